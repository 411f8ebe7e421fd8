package proxy_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ldfi-dev/ldfi/fit/go/internal/fittest"
	"github.com/ldfi-dev/ldfi/fit/go/proxy"
)

// Each connection is an instance, whose marks leave before the fault is over, and below the call that passes.
func TestAMarkLeavesInTheNameOfTheCaller(t *testing.T) {
	defer proxy.Batch(time.Hour)()
	beside := stand(t, echo(t).URL)
	// A caller that is still waiting, then, when its mark is there.
	value := fittest.Sign('t', fittest.Fault{How: "delay-60000", Point: beside.point()})
	var instances []string
	for connections := range 2 {
		connection, err := net.Dial("tcp", beside.address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = connection.Close() }()
		_, _ = fmt.Fprintf(connection, "GET /titles/17 HTTP/1.1\r\nHost: %s\r\nTraceparent: %s\r\nBaggage: fit=%s\r\n\r\n",
			beside.address, traceparent, value)
		instances = append(instances, strings.Fields(beside.marked(t, connections+1))[3])
	}
	if instances[0] == instances[1] {
		t.Error("two connections are one instance")
	}

	// A connection that goes on is the same instance, in the control arm as well.
	connection, err := net.Dial("tcp", beside.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	answers := bufio.NewReader(connection)
	for calls, arm := range []byte("tc") {
		value = fittest.Sign(arm, fittest.Fault{How: "delay-1", Point: beside.point()})
		_, _ = fmt.Fprintf(connection, "GET /titles/17 HTTP/1.1\r\nHost: %s\r\nTraceparent: %s\r\nBaggage: fit=%s\r\n\r\n",
			beside.address, traceparent, value)
		said := strings.Fields(beside.marked(t, calls+3))
		if said[1] != map[byte]string{'t': "treatment", 'c': "control"}[arm] || said[4] != "delay@"+beside.point() {
			t.Errorf("it says %v", said)
		}
		instances = append(instances, said[3])
		for blank := ""; blank != "\r\n"; {
			if blank, err = answers.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = answers.Discard(answers.Buffered())
	}
	if instances[2] != instances[3] || instances[2] == instances[0] {
		t.Errorf("of one connection: %v", instances[2:])
	}
}

// marked waits for so many marks, and returns what the last of them says.
func (s *standing) marked(t *testing.T, count int) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var said []string
		for _, span := range s.spans.GetSpans() {
			if span.Name == "fit.mark" && span.Parent.SpanID().String() == "b7ad6b7169203331" &&
				span.Resource.Attributes()[0].Value.AsString() == caller {
				said = append(said, span.Attributes[0].Value.AsString())
			}
		}
		if len(said) >= count {
			return said[count-1]
		}
	}
	t.Fatalf("fewer than %d marks were exported within a minute", count)
	return ""
}
