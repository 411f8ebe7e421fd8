package fit

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

type readFault struct {
	Hash    string `json:"hash"`
	Kind    Kind   `json:"kind"`
	DelayMS int64  `json:"delay_ms"`
	First   int    `json:"first"`
}

type contextVectors struct {
	Cases []struct {
		Name    string
		Keys    string
		Now     float64
		Value   string
		Result  string
		Context *struct {
			Experiment string
			Arm        Arm
			Expires    int64
			Faults     []readFault
		}
	}
	ReadableKeys []struct {
		Text    string
		Signing string
		IDs     []string
	} `json:"readable_keys"`
	UnreadableKeys []string `json:"unreadable_keys"`
}

func vectors(t testing.TB, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "protocol", "vectors", file))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func at(seconds float64) time.Time {
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9))
}

func resultOf(err error) string {
	for result, reason := range map[string]error{
		"malformed": ErrMalformed, "forged": ErrForged, "expired": ErrExpired,
	} {
		if errors.Is(err, reason) {
			return result
		}
	}
	if err != nil {
		return err.Error()
	}
	return "accepted"
}

func TestContextVectors(t *testing.T) {
	var all contextVectors
	vectors(t, "contexts.json", &all)
	if len(all.Cases) < 200 {
		t.Fatalf("only %d cases", len(all.Cases))
	}
	for _, vector := range all.Cases {
		t.Run(vector.Name, func(t *testing.T) {
			keys, err := ParseKeys(vector.Keys)
			if err != nil {
				t.Fatal(err)
			}
			read, err := Decode(keys, vector.Value, at(vector.Now))
			if result := resultOf(err); result != vector.Result {
				t.Fatalf("%s, want %s: %s", result, vector.Result, vector.Value)
			}
			if vector.Context == nil {
				return
			}
			want := vector.Context
			if read.Experiment != want.Experiment || read.Arm != want.Arm || read.Expires.Unix() != want.Expires {
				t.Errorf("read %+v, want %+v", read, want)
			}
			if len(read.Injections) != len(want.Faults) {
				t.Errorf("%d faults, want %d", len(read.Injections), len(want.Faults))
			}
			for _, fault := range want.Faults {
				longest := time.Duration(fault.DelayMS) * time.Millisecond
				if got := read.Injections[fault.Hash]; got != (Injection{fault.Kind, longest, fault.First}) {
					t.Errorf("at %s %+v, want %+v", fault.Hash, got, fault)
				}
			}
		})
	}
}

func TestKeyVectors(t *testing.T) {
	var all contextVectors
	vectors(t, "contexts.json", &all)
	for _, readable := range all.ReadableKeys {
		keys, err := ParseKeys(readable.Text)
		if err != nil {
			t.Fatalf("%s: %v", readable.Text, err)
		}
		ids := keys.IDs()
		if ids[0] != readable.Signing || len(ids) != len(readable.IDs) {
			t.Errorf("%s: ids %v, want %v", readable.Text, ids, readable.IDs)
		}
	}
	for _, text := range all.UnreadableKeys {
		if keys, err := ParseKeys(text); !errors.Is(err, ErrKeys) {
			t.Errorf("%q: read as %v, %v", text, keys, err)
		}
	}
}

func TestPointVectors(t *testing.T) {
	var all struct {
		HTTP []struct {
			Caller, Method, Host, Path, Template, Name, Hash string
			Port                                             *int
		}
		RPC     []struct{ Caller, Method, Peer, Name, Hash string }
		DB      []struct{ Caller, Statement, Peer, Name, Hash string }
		Connect []struct{ Caller, Peer, Name, Hash string }
		Message []struct{ Caller, Operation, System, Destination, Name, Hash string }
		Hashes  []struct{ Name, Hash string }
	}
	vectors(t, "points.json", &all)
	if len(all.HTTP) < 50 {
		t.Fatalf("only %d names", len(all.HTTP))
	}
	for _, vector := range all.HTTP {
		port := 0
		if vector.Port != nil {
			port = *vector.Port
		}
		name := HTTPPoint(vector.Caller, vector.Method, vector.Host, port, vector.Path, vector.Template)
		if name != vector.Name || PointHash(name) != vector.Hash {
			t.Errorf("%s (%s), want %s (%s)", name, PointHash(name), vector.Name, vector.Hash)
		}
	}
	for _, vector := range all.RPC {
		if name := RPCPoint(vector.Caller, vector.Method, vector.Peer); name != vector.Name {
			t.Errorf("%s, want %s", name, vector.Name)
		}
	}
	for _, vector := range all.DB {
		if name := DatabasePoint(vector.Caller, vector.Statement, vector.Peer); name != vector.Name {
			t.Errorf("%s, want %s", name, vector.Name)
		}
	}
	for _, vector := range all.Connect {
		if name := ConnectPoint(vector.Caller, vector.Peer); name != vector.Name {
			t.Errorf("%s, want %s", name, vector.Name)
		}
	}
	for _, vector := range all.Message {
		name := MessagePoint(vector.Caller, vector.Operation, vector.System, vector.Destination)
		if name != vector.Name {
			t.Errorf("%s, want %s", name, vector.Name)
		}
	}
	for _, vector := range all.Hashes {
		if hash := PointHash(vector.Name); hash != vector.Hash {
			t.Errorf("hash of %s is %s, want %s", vector.Name, hash, vector.Hash)
		}
	}
}

func TestContextsGoToTheHostsOfTheVectors(t *testing.T) {
	var read struct {
		Cases []struct {
			Hosts   *string
			Host    string
			Allowed bool
		}
	}
	vectors(t, "hosts.json", &read)
	for _, each := range read.Cases {
		var hosts *Hosts
		listed := "not set"
		if each.Hosts != nil {
			listed = *each.Hosts
			hosts, _ = ParseHosts(listed)
		}
		if hosts.Allow(each.Host) != each.Allowed {
			t.Errorf("FIT_HOSTS %q, host %q: not %v", listed, each.Host, each.Allowed)
		}
	}
	if len(read.Cases) < 300 {
		t.Errorf("%d cases", len(read.Cases))
	}
}

func TestKindsAreThoseOfAllLanguages(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "protocol", "kinds.json"))
	if err != nil || !bytes.Equal(text, kindsJSON) {
		t.Errorf("kinds.json is not a copy of fit/protocol/kinds.json (%v): run docs/generate.py", err)
	}
	for word, each := range kinds {
		if each.Connecting != nil && causes[each.Connecting.Go.Exception] == nil {
			t.Errorf("%s: nothing makes a %s", word, each.Connecting.Go.Exception)
		}
	}
}
