// Package repotest checks what no package can check of itself: that every
// documented method says how it progresses and when it takes effect, that
// shared words go through the seam and cost nothing there, that importers get
// one dependency and no more, that their calls allocate what is promised, and
// that the README shows code that runs.
//
// It has tests and helpers for them, and is imported by nobody.
//
// The gates, with the seconds of processor time that each takes alone, and what in
// the history of the repository it has changed. Those without a find are cheap, and
// hold a rule that no reviewer looks up. make test leaves out those marked *.
//
//	gate                                 s    find
//	Sizes*                               81   a further type of values had Duration's methods
//	Consumer                             14   a layer too much on a fast path, closures on the heap
//	BlockingGoesThroughTheSeam           8    a lock of internal/folder
//	ProgressIsNoBetterThanTheCode        3    sentences that promised too much
//	Walks*                               @W@    Record, Start and Seal went through too many files
//	VerificationBadges                   1
//	NoSleepOutsideBubbles                @S@    a sleep outside of the bubble of its file
//	PackagesAreKnown                     1
//	MakefileStressesAll, -NamesTests     1    packages whose stress tests nobody ran
//	PackageTestsImportNothingForeign     1
//	PackagesKeepBooks                    1
//	ExportedNamesAreDocumented           1
//	ReadmeShowsTheExamples               1    samples that were not their examples
//	RetiredWordsStayRetired              @R@    names that came back
//	MarkdownIsShort                      @D@    pages that had grown
//	OperationsAreDocumented              1
//	ErrorsOfSettingsReadAlike            1
//	PanicsReadAlike                      1
//	Imports, NoHiddenState               1
//	TestsExploreOrDoNot                  1
//	MakefileSetsWhatItUses               1    a variable that was used and empty
//	MakefileNamesModules                 1
//	ReportedBugs                         1
//	VerificationSumsUp, -CountsMutants   1    sums of pages that had changed
//	ModulesShowTheirExamples             1
//	ReadmeHasTheSizes                    1
package repotest
