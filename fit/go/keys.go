package fit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// KeysVariable is the environment variable that holds the keys, as in "k1:secret,k0:older".
const KeysVariable = "FIT_KEYS"

const (
	minSecret = 16 // characters
	maxKeyID  = 16
	macBytes  = 16 // 128 bits of HMAC-SHA256; RFC 2104, section 5 allows truncation
	macLength = 22 // characters of base64url
)

// ErrKeys is what [ParseKeys] returns, with the reason. No message shows a secret.
var ErrKeys = errors.New(KeysVariable + " cannot be read")

// Keys are the keys that sign failure contexts. Whoever lacks them injects nothing.
type Keys struct {
	ids     []string
	secrets map[string][]byte
}

// ParseKeys reads ID:SECRET pairs, separated by commas. The first signs, all of them verify.
func ParseKeys(text string) (*Keys, error) {
	keys := &Keys{secrets: map[string][]byte{}}
	for _, pair := range strings.Split(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		if err := keys.add(pair); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKeys, err)
		}
	}
	if len(keys.ids) == 0 {
		return nil, fmt.Errorf("%w: it is empty; write ID:SECRET, or unset it", ErrKeys)
	}
	return keys, nil
}

func (k *Keys) add(pair string) error {
	id, secret, found := strings.Cut(pair, ":")
	switch {
	case !found || !isName(id, maxKeyID):
		return fmt.Errorf("key number %d is not ID:SECRET", len(k.ids)+1)
	case !utf8.ValidString(secret):
		return fmt.Errorf("the secret of key %s is not UTF-8", id)
	case utf8.RuneCountInString(secret) < minSecret:
		return fmt.Errorf("the secret of key %s is shorter than %d characters", id, minSecret)
	case k.secrets[id] != nil:
		return fmt.Errorf("key %s stands there twice", id)
	}
	k.ids = append(k.ids, id)
	k.secrets[id] = []byte(secret)
	return nil
}

// IDs returns the ids of all keys; the first one signs.
func (k *Keys) IDs() []string { return append([]string(nil), k.ids...) }

// String names the keys without their secrets, so that a log may hold it.
func (k *Keys) String() string { return "fit.Keys(" + strings.Join(k.ids, ",") + ")" }

// GoString does what String does, for %#v.
func (k *Keys) GoString() string { return k.String() }

// Sign returns the MAC of payload under the key that signs, the first.
func (k *Keys) Sign(payload string) string { return macOf(payload, k.secrets[k.ids[0]]) }

// verify tells whether mac signs payload under the named key. It compares text, in constant time: a
// decoded MAC would let sixteen texts pass for one.
func (k *Keys) verify(payload, id, mac string) bool {
	secret, known := k.secrets[id]
	return known && hmac.Equal([]byte(macOf(payload, secret)), []byte(mac))
}

func macOf(payload string, secret []byte) string {
	digest := hmac.New(sha256.New, secret)
	digest.Write([]byte(payload))
	return base64.RawURLEncoding.EncodeToString(digest.Sum(nil)[:macBytes])
}
