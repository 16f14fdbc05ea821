package repotest

import (
	"fmt"
	"go/ast"
	"strings"
)

// undocumented returns the exported declarations of a file without a doc
// comment that starts with their name. Members of a documented group may rely
// on the group's comment.
func undocumented(s source) (missing []string) {
	check := func(name *ast.Ident, docs ...*ast.CommentGroup) {
		if !name.IsExported() {
			return
		}
		for i, doc := range docs {
			text := doc.Text()
			if i > 0 && text != "" || strings.HasPrefix(text, name.Name+" ") {
				return
			}
		}
		missing = append(missing, fmt.Sprintf("%s: %s", s.fset.Position(name.Pos()), name.Name))
	}
	for _, decl := range s.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				if base, _ := baseType(d.Recv.List[0].Type); !ast.IsExported(base) {
					continue
				}
			}
			check(d.Name, d.Doc)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if d.Lparen.IsValid() {
						check(spec.Name, spec.Doc, d.Doc)
					} else {
						check(spec.Name, d.Doc)
					}
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						check(name, spec.Doc, spec.Comment, d.Doc)
					}
				}
			}
		}
	}
	return missing
}
