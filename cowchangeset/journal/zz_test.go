package journal_test
import ("testing";"time";"fmt";"runtime"
"github.com/latchfree/latchfree/cowchangeset"
"github.com/latchfree/latchfree/cowchangeset/journal")
type chg struct{ Table, Op, Key string; Row int }
func TestZZMillion(t *testing.T) {
 for _, per := range []int{1, 64} {
 p := t.TempDir()+"/j"
 j, err := journal.Open[chg](p, journal.Options{Sync: journal.SyncNever}); must(t, err)
 must(t, j.Start(background, header{ID:"A", Ordinal:1}))
 t0 := time.Now()
 for i := 0; i < 1000000; i += per {
  var es []cowchangeset.Entry[chg]
  for k := range per { es = append(es, cowchangeset.Entry[chg]{Seq: uint64(i+k), Value: chg{"users","insert",fmt.Sprintf("user-%08d",i+k), i+k}}) }
  must(t, j.Append(background, "A", es))
 }
 must(t, j.Close())
 w := time.Since(t0)
 rep, err := verify(p); must(t, err)
 runtime.GC()
 t0 = time.Now()
 j, err = journal.Open[chg](p, journal.Options{}); must(t, err)
 o := time.Since(t0)
 t0 = time.Now()
 tr, err := cowchangeset.Resume(background, cowchangeset.Config[chg]{Store: j}); must(t, err)
 r := time.Since(t0)
 var ms runtime.MemStats
 runtime.ReadMemStats(&ms)
 t.Logf("per %d: file %d MB write %v open %v resume %v sys %d MB", per, rep.Bytes>>20, w, o, r, ms.Sys>>20)
 runtime.KeepAlive(tr)
 j.Close()
 }
}
