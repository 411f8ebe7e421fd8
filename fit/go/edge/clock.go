package edge

import "time"

var start = time.Now()
