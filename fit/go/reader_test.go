package fit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
)

const (
	secret   = "0123456789abcdef"
	alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-"
)

func testKeys(t testing.TB) *Keys {
	t.Helper()
	keys, err := ParseKeys("k1:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// signed makes a context as the signer, fit/protocol/context.py, does.
func signed(payload string, with string) string { return payload + "." + macOf(payload, []byte(with)) }

func oneGroup(how, point string, arm byte, expires time.Time) string {
	return signed(fmt.Sprintf("2.k1.e7c1.%c.%d.%s~%s", arm, expires.Unix(), how, PointHash(point)), secret)
}

func FuzzDecode(f *testing.F) {
	var all contextVectors
	vectors(f, "contexts.json", &all)
	for _, vector := range all.Cases {
		f.Add(vector.Value)
	}
	keys := testKeys(f)
	now := time.Unix(1000, 0)
	f.Fuzz(func(t *testing.T, value string) {
		read, err := Decode(keys, value, now)
		if err == nil && !read.Expires.After(now) {
			t.Errorf("obeyed past its expiry: %q", value)
		}
		if err != nil && resultOf(err) == err.Error() {
			t.Errorf("%q: an error without a reason: %v", value, err)
		}
		if err == nil && (len(value) > MaxLength || strings.Count(value, ".") != 6) {
			t.Errorf("obeyed %q", value)
		}
		// Whatever is of the grammar is obeyed when it is signed, and its payload only then.
		if dot := strings.LastIndexByte(value, '.'); dot >= 0 && len(value) <= MaxLength {
			again := signed(value[:dot], secret)
			if again == value {
				return
			}
			if err == nil {
				t.Errorf("obeyed %q, which its key did not sign", value)
			}
		}
	})
}

func FuzzFindEntry(f *testing.F) {
	for _, header := range []string{"", "a=b,fit=1.2;p=q", "%66it=1,FIT=2", "fit;p", "fit"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		value, found := FindEntry(header)
		if !found && value != "" {
			t.Errorf("%q: not found, and yet %q", header, value)
		}
		if strings.Contains(value, ",") {
			t.Errorf("%q: more than one entry: %q", header, value)
		}
	})
}

func TestOfTenThousandForgeriesNoneIsObeyed(t *testing.T) {
	keys, now := testKeys(t), time.Now()
	draw := rand.New(rand.NewPCG(6, 6))
	letter := func() string { return string(alphabet[draw.IntN(len(alphabet))]) }
	for count := 0; count < 10_000; {
		how := []string{"error", "status-503-n2", "refused", "delay-1500"}[draw.IntN(4)]
		good := oneGroup(how, fmt.Sprint("p", draw.IntN(500)), "tc"[draw.IntN(2)], now.Add(time.Minute))
		cut := draw.IntN(len(good))
		payload := good[:len(good)-macLength-1]
		for _, forged := range []string{
			good[:cut] + letter() + good[cut+1:],
			good[:cut] + good[cut+1:],
			good[:cut] + letter() + good[cut:],
			good[:cut],
			strings.Replace(good, ".e7c1.", ".e7c2.", 1),
			good + letter(),
			signed(payload, "not-the-right-key"),
			signed(strings.Replace(payload, ".k1.", ".k2.", 1), secret),
			oneGroup(how, "p", 't', now.Add(-time.Duration(draw.IntN(3600)+1)*time.Second)),
			good + strings.Repeat(letter(), 5000),
		} {
			if forged == good {
				continue
			}
			count++
			if read, err := Decode(keys, forged, now); err == nil {
				t.Fatalf("obeyed %s: %+v", forged, read)
			}
		}
	}
}

func TestAnExpiryHasNoTolerance(t *testing.T) {
	keys, ends := testKeys(t), time.Unix(1060, 0)
	value := oneGroup("refused", "p", 't', ends)
	if _, err := Decode(keys, value, ends.Add(-time.Nanosecond)); err != nil {
		t.Errorf("the instant before: %v", err)
	}
	if _, err := Decode(keys, value, ends); !errors.Is(err, ErrExpired) {
		t.Errorf("in its last second: %v", err)
	}
}

func TestNoFormatShowsASecret(t *testing.T) {
	keys := testKeys(t)
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if shown := fmt.Sprintf(format, keys); strings.Contains(shown, secret) {
			t.Errorf("%s shows %s", format, shown)
		}
	}
}

func TestEntriesOfAHeader(t *testing.T) {
	for _, each := range []struct {
		header, value string
		found         bool
	}{
		{"", "", false},
		{"a=b", "", false},
		{"fit=1.2", "1.2", true},
		{"a=b,fit=1.2,c=d", "1.2", true},
		{"a=b, fit = 1.2 ;p=q", "1.2", true},
		{"a=b,%66it=1.2", "1.2", true},
		{"FIT=1.2,a=fit", "1.2", true},
		{"fit=1.2,fit=1.3", "", false},
		{"fit=1.2,%66it=1.2", "", false},
		{"fit2=1.2,a=fit=1", "", false},
		{"fit;p=1,a=b", "", true},
	} {
		if value, found := FindEntry(each.header); value != each.value || found != each.found {
			t.Errorf("%q: %q %v, want %q %v", each.header, value, found, each.value, each.found)
		}
	}
}

func TestOccurrencesAreCountedForEachTraceAndPoint(t *testing.T) {
	var counts occurrences
	for _, each := range []struct {
		trace byte
		point string
		want  bool
	}{{1, "p", true}, {1, "p", true}, {1, "p", false}, {2, "p", true}, {1, "q", true}} {
		if got := counts.admits(trace.TraceID{each.trace}, each.point, 2); got != each.want {
			t.Errorf("%+v: %v", each, got)
		}
	}
	for i := range 2 * remembered {
		counts.admits(trace.TraceID{3, byte(i), byte(i >> 8)}, "p", 1)
	}
	if len(counts.counts.held) != remembered || counts.counts.order.Len() != remembered {
		t.Errorf("%d counts are kept", len(counts.counts.held))
	}
}

func TestNamesOfOtherPoints(t *testing.T) {
	for name, want := range map[string]string{
		RPCPoint("api", "/shop.Prices/Get", ""):                                 "api>rpc:Get:/shop.Prices",
		RPCPoint("api", "/shop.Prices/Get", "127.0.0.1:50051"):                  "api>rpc:Get:127.0.0.1:50051/shop.Prices",
		RPCPoint("api", "shop.Prices/Get", "Prices:50051"):                      "api>rpc:Get:prices/shop.Prices",
		DatabasePoint("api", "/* x */ select name from owners where id=1", "d"): "api>db:SELECT:d/owners",
		DatabasePoint("api", "commit", "d"):                                     "api>db:COMMIT:d",
		ConnectPoint("api", "recordsdb"):                                        "api>db:connect:recordsdb",
		MessagePoint("api", "send", "kafka", "plays"):                           "api>message:send:kafka/plays",
		MessagePoint("api", "send", "kafka", "plays.17"):                        "api>message:send:kafka/plays.*",
	} {
		if name != want {
			t.Errorf("%s, want %s", name, want)
		}
	}
}
