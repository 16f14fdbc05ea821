// Package repotest checks what no package can check of itself: that every
// documented method says how it progresses and when it takes effect, that
// shared words go through the seam and cost nothing there, that importers get
// one dependency and no more, that their calls allocate what is promised, and
// that the README shows code that runs.
//
// It has tests and helpers for them, and is imported by nobody.
//
// The gates, with the seconds of processor time of each by itself, rounded up, and what it
// made somebody mend; a question mark is a guess. Those without a find cost little, and
// keep rules that no reviewer looks up. make test leaves out those marked with a star,
// or a part of them.
//
//	gate                                s    find
//	Sizes*                              81   methods of Duration in programs without expiry
//	Consumer*                           70   a fast path with a layer more?
//	NoSleepOutsideBubbles*              13   a benchmark's helper that slept on when it was to stop
//	Walks*                              12   Record, Start and Seal went through too many functions
//	BlockingGoesThroughTheSeam          4    a lock of internal/folder?
//	ProgressIsNoBetterThanTheCode       4    sentences that promised too much?
//	VerificationBadges                  2
//	PackagesAreKnown                    2
//	RetiredWordsStayRetired             1    names in tests?
//	MarkdownIsShort                     1    pages that had grown
//	FoldersAreShort                     1    a folder of 77 entries
//	MakefileSetsWhatItUses              1    a variable that was used and empty
//	ChecksSayWhatTestsSay               1    a comment that had changed, and its page had not
//	VerificationSumsUp                  1    sums of pages that had changed?
//	GatesAreListed                      1    two gates that this list lacked
//	ReadmeShowsTheExamples              1
//	ModulesShowTheirExamples            1
//	MakefileStressesAll                 1
//	MakefileNamesTests                  1
//	MakefileNamesModules                1
//	PackageTestsImportNothingForeign    1
//	PackagesKeepBooks                   1
//	ExportedNamesAreDocumented          1
//	DocsShowNoUnexportedTypes           1
//	OperationsAreDocumented             1
//	ErrorsOfSettingsReadAlike           1
//	PanicsReadAlike                     1
//	Imports                             1
//	NoHiddenState                       1
//	TestsExploreOrDoNot                 1
//	ReportedBugs                        1
//	VerificationCountsMutants           1
//	ReadmeHasTheSizes                   1
package repotest
