// Package notes keeps the notes of one parent session on disk: one numbered directory for
// each parent and project, one note for each prompt, one index that links them all. It
// knows nothing of agents; it is told what is planned and how it ended.
package notes
