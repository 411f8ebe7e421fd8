package edge

import (
	"encoding/binary"
	"math"
	"regexp"
	"strconv"
)

const (
	lengthNumber = `((?:0|[1-9][0-9]{0,3})(?:\.[0-9]{0,2}[1-9])?)`
	shortest     = 0.001 // seconds
)

var (
	oneForm       = regexp.MustCompile(`^` + lengthNumber + `$`)
	evenForm      = regexp.MustCompile(`^` + lengthNumber + `\.\.` + lengthNumber + `$`)
	lognormalForm = regexp.MustCompile(`^p50=` + lengthNumber + `\.\.p99=` + lengthNumber + `$`)
)

// A distribution tells, in seconds, the length below which a share of all lengths is.
type distribution func(share float64) float64

// lengthsOf reads "2" (always that), "0.5..2" (any length between the two) or "p50=0.8..p99=3" (lognormal), as
// fit/protocol/lengths.py does; nil for what is none of them.
func lengthsOf(text string) distribution {
	if found := oneForm.FindStringSubmatch(text); found != nil {
		if length, _ := strconv.ParseFloat(found[1], 64); length >= shortest {
			return func(float64) float64 { return length }
		}
	}
	if shorter, longer, ok := bounds(evenForm, text); ok {
		return func(share float64) float64 { return shorter + float64(share*(longer-shorter)) }
	}
	if median, longer, ok := bounds(lognormalForm, text); ok && median >= shortest {
		return func(share float64) float64 {
			widths := quantile(share) / quantile(0.99)
			return median * math.Exp(float64(widths*math.Log(longer/median)))
		}
	}
	return nil
}

func bounds(form *regexp.Regexp, text string) (shorter, longer float64, ok bool) {
	found := form.FindStringSubmatch(text)
	if found == nil {
		return 0, 0, false
	}
	shorter, _ = strconv.ParseFloat(found[1], 64)
	longer, _ = strconv.ParseFloat(found[2], 64)
	return shorter, longer, shorter < longer
}

// shareOf draws a number above 0 and below 1, always the same one for a lot.
func shareOf(lot string) float64 {
	const bits = 53 // as many as a float64 holds exactly
	number := binary.BigEndian.Uint64(digest(lot, 8)) >> (64 - bits)
	return (float64(number) + 0.5) / (1 << bits)
}

// quantile is that of the standard normal distribution, as M. J. Wichura approximates it: Algorithm AS 241
// (PPND16), Applied Statistics 37 (3), 1988.
func quantile(p float64) float64 {
	q := p - 0.5
	if math.Abs(q) <= 0.425 {
		r := 0.180625 - float64(q*q)
		return polynomial(near[0], r) * q / polynomial(near[1], r)
	}
	r := math.Sqrt(-math.Log(min(p, 1-p)))
	tail, less := middle, 1.6
	if r > 5 {
		tail, less = far, 5
	}
	x := polynomial(tail[0], r-less) / polynomial(tail[1], r-less)
	return math.Copysign(x, q)
}

// polynomial evaluates one that is given by the coefficient of the highest power first. The conversion keeps
// compilers from fusing: every edge draws the same length.
func polynomial(coefficients [8]float64, r float64) float64 {
	sum := 0.0
	for _, each := range coefficients {
		sum = float64(sum*r) + each
	}
	return sum
}

var (
	near = [2][8]float64{
		{
			2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
			13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608,
		}, {
			5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
			5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1,
		},
	}
	middle = [2][8]float64{
		{
			7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
			3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734,
		}, {
			1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966,
			0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1,
		},
	}
	far = [2][8]float64{
		{
			2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
			0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699,
			6.6579046435011037772,
		}, {
			2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
			7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1,
		},
	}
)
