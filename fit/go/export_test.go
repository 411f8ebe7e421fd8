package fit

import "time"

// MarkOf is what tests hold against the vectors.
var MarkOf = markOf

// AwaitMarks has calls wait for their marks for so long, where a machine may be busy.
func AwaitMarks(longest time.Duration) { markPatience = longest }
