// Package edge makes a Go service, or a proxy in front of any other, the edge: the first that a request
// reaches, where it is decided once whether it takes part in an experiment.
//
//	front, err := edge.FromEnv() // FIT_KEYS, LDFI_URL, LDFI_TOKEN
//	if err != nil {
//		log.Print(err) // contexts from outside are taken out all the same
//	}
//	defer front.Close()
//	http.ListenAndServe(":8080", front.Handler(otelhttp.NewHandler(injector.Handler(mux), "server")))
//
// It stands outside the tracing, or the sampling decision comes before the stamp. What it does is specified in
// docs/edge.md and held against fit/protocol/vectors/edge.json.
package edge

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

// DeviceHeader says which device a request comes from, unless [Config] names something else.
const DeviceHeader = "X-Device-Id"

const (
	// maxBaggage is how many characters a header has at most: OpenTelemetry drops the whole of a longer one
	// (W3C Baggage, section 3.3.2).
	maxBaggage = 8192

	remembered = 1000 // contexts that were signed under one lease
)

// Config says by what an edge decides. Without keys, a URL or a token it only takes contexts out.
type Config struct {
	Keys     *fit.Keys // sign and verify
	URL      string    // the service's
	Token    string    // with the role "edge"
	Halted   bool      // stamp nothing, whatever the service says
	HaltFile string    // stamp nothing while this file is there
	Features string    // what spans shall tell of: "header.x-plan,cookie.ab"
	Device   *string   // who a device is (DeviceVariable); nil: what its header X-Device-Id says
	Trusted  *string   // whose X-Forwarded-For is believed (TrustedVariable); nil: that of 127.0.0.1
}

// Edge decides by the rules that it fetches from the service. A nil Edge only takes contexts out.
type Edge struct {
	keys *fit.Keys
	poll *poll // nil: contexts are only taken out
	halt halt
	told map[string]bool
	lots atomic.Uint64

	devices identity
}

// New makes an edge. Where something in its configuration cannot be read the error says so, and the edge that
// is returned all the same does without it.
func New(config Config) (*Edge, error) {
	made := &Edge{keys: config.Keys, halt: halt{always: config.Halted, file: config.HaltFile}}
	var wrong, unread error
	made.told, wrong = parseChosen(config.Features)
	said, trusted := ownDevice, loopback
	if config.Device != nil {
		said = *config.Device
	}
	if config.Trusted != nil {
		trusted = *config.Trusted
	}
	var misread error
	made.devices, misread = parseDevices(said, trusted)
	wrong = errors.Join(wrong, misread)
	if config.Keys == nil || config.URL == "" || config.Token == "" {
		return made, wrong
	}
	if service, err := url.Parse(config.URL); err != nil || service.Host == "" ||
		(service.Scheme != "http" && service.Scheme != "https") {
		unread = fmt.Errorf("the edge stays quiet: LDFI_URL is %q; write http:// or https://", config.URL)
		return made, errors.Join(wrong, unread)
	}
	made.poll = newPoll(config.URL, config.Token)
	made.poll.devices = made.devices.kinds()
	return made, wrong
}

// FromEnv makes the edge that the environment describes: FIT_KEYS, LDFI_URL, LDFI_TOKEN, FIT_HALT,
// FIT_HALT_FILE, FIT_FEATURES, FIT_DEVICE and FORWARDED_ALLOW_IPS. On errors it does what [New] does.
func FromEnv() (*Edge, error) {
	var keys *fit.Keys
	var unread error
	if text := os.Getenv(fit.KeysVariable); text != "" {
		keys, unread = fit.ParseKeys(text)
	}
	made, err := New(Config{
		Keys: keys, URL: os.Getenv("LDFI_URL"), Token: os.Getenv("LDFI_TOKEN"),
		Halted: os.Getenv("FIT_HALT") == "1", HaltFile: os.Getenv("FIT_HALT_FILE"),
		Features: os.Getenv("FIT_FEATURES"),
		Device:   set(DeviceVariable), Trusted: set(TrustedVariable),
	})
	return made, errors.Join(unread, err)
}

// set returns what a variable says; nil where it is not set.
func set(variable string) *string {
	if text, is := os.LookupEnv(variable); is {
		return &text
	}
	return nil
}

// Close stops polling and drops the lease: nothing is stamped any more.
func (e *Edge) Close() {
	if e != nil && e.poll != nil {
		e.poll.close()
	}
}

// A decision is what an edge makes of a request.
type decision struct {
	header  string // the baggage with which it goes on
	context string // the failure context in it, if any
	again   bool   // its device was stamped for the same experiment before
}

// decide takes contexts from outside out of a baggage header, but one that an engineer has signed for this
// very device, and stamps the request. What it has is asked only for devices that are claimed; nil for
// requests that are never stamped.
func (e *Edge) decide(inbound, device string, has func(wanted map[string]bool) features) decision {
	found, others := []string(nil), inbound
	if inbound != "" {
		found, others = fit.Entries(inbound)
	}
	for _, each := range found {
		if e.admits(each, device) {
			return decision{header: with(others, each), context: each}
		}
	}
	if has != nil {
		if stamped, ok := e.stamped(others, device, has); ok {
			return stamped
		}
	}
	return decision{header: others}
}

// with puts our entry in front of a header's others, where no limit on entries cuts it off.
func with(others, value string) string {
	if others == "" {
		return fit.Entry + "=" + value
	}
	return fit.Entry + "=" + value + "," + others
}

// admits tells whether a context from outside is one that an engineer has signed for this very device.
func (e *Edge) admits(value, device string) bool {
	if e == nil || e.keys == nil || device == "" {
		return false
	}
	read, err := fit.Decode(e.keys, value, time.Now())
	return err == nil && subtle.ConstantTimeCompare([]byte(read.Experiment), []byte(scenarioOf(device))) == 1
}

// scenarioOf names the experiment that stands for replaying on this device.
func scenarioOf(device string) string {
	sum := sha256.Sum256([]byte("ldfi scenario\n" + device))
	return "s-" + hex.EncodeToString(sum[:12])
}

func (e *Edge) stamped(others, device string, has func(map[string]bool) features) (done decision, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false // the request goes on, unstamped
		}
	}()
	if e == nil || e.poll == nil {
		return decision{}, false
	}
	e.poll.start()
	held := e.poll.known.rules()
	if len(held.rules) == 0 || device == "" || e.halt.holds() {
		return decision{}, false
	}
	mark := markOf(device)
	chosen, ok := held.choose(mark, has)
	if !ok {
		return decision{}, false
	}
	value, err := e.sign(held, chosen, device)
	if err != nil || len(with(others, value)) > maxBaggage { // whenever it expires, it is of this length
		return decision{}, false
	}
	under, again := e.poll.enrol(held, chosen, mark)
	if under == nil {
		return decision{}, false
	}
	if under != held {
		value, err = e.sign(under, chosen, device)
	}
	return decision{with(others, value), value, again}, err == nil
}

// choose returns the first of the claims on a device whose class the request is of.
func (h *held) choose(device mark, has func(map[string]bool) features) (claimed, bool) {
	claims := h.claims(device)
	if len(claims) == 0 {
		return claimed{}, false
	}
	of := has(h.wanted)
	for _, each := range claims {
		if each.rule.predicate.holds(of) {
			return each, true
		}
	}
	return claimed{}, false
}

// sign signs once per experiment, arm and lease; once per request only where lengths are drawn. A context
// expires by the wall clock, for it is read on other machines; what is left of the lease is measured by the
// steady one. It holds for longer than the lease where the rule asks for that.
func (e *Edge) sign(held *held, chosen claimed, device string) (string, error) {
	left := max(held.ends-steady(), chosen.rule.patience)
	what := stamp{
		experiment: chosen.rule.experiment, arm: chosen.arm, faults: chosen.rule.faults, longest: chosen.rule.delay,
		expires: int64(math.Ceil(float64(time.Now().Add(left).UnixMilli()) / 1000)),
	}
	if chosen.rule.draws {
		what.lot = chosen.rule.salt + "\n" + device + "\n" + strconv.FormatUint(e.lots.Add(1), 10)
		return what.sign(e.keys)
	}
	return held.once(signedBy{chosen.rule, string(chosen.arm), what.expires}, func() (string, error) {
		return what.sign(e.keys)
	})
}

func (h *held) once(key signedBy, sign func() (string, error)) (string, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if known, ok := h.signed[key]; ok {
		return known, nil
	}
	value, err := sign()
	if err == nil {
		if len(h.signed) >= remembered {
			clear(h.signed)
		}
		h.signed[key] = value
	}
	return value, err
}
