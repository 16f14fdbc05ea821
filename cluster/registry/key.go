package registry

import (
	"fmt"
	"strings"
)

const (
	// maxKey bounds a key in the bucket. With its prefix and the inbox of the answer it
	// must fit into a line of the protocol, which a server ends the connection for
	// exceeding: 4,096 bytes by default.
	maxKey = 2048

	// syncPrefix begins the bucket's keys of sync messages. No key of a registry is
	// stored under it, since no hexadecimal digit follows the "=".
	syncPrefix = "=sync."
	// syncKeys is how many of them there are. Replicas that beat together would
	// otherwise replace each other's messages, which makes gaps.
	syncKeys = 64

	hexDigits = "0123456789ABCDEF"
)

// normalized returns the spelling under which key is stored.
func (r *Registry[K, V]) normalized(key K) (K, error) {
	if r.config.Normalize == nil {
		return key, nil
	}
	norm, err := r.config.Normalize(key)
	if err != nil {
		return key, fmt.Errorf("%w: %w", ErrInvalidKey, err)
	}
	return norm, nil
}

// encodeKey returns the key under which the bucket stores key. Letters, digits and
// "-_/" stand for themselves, and so does a "." between other bytes. Any other byte is
// "=" and two hexadecimal digits. The empty key is "=".
func encodeKey(key string) (string, error) {
	if key == "" {
		return "=", nil
	}
	b, escaped := make([]byte, 0, len(key)), false
	for i := range len(key) {
		if c := key[i]; plain(key, i) {
			b = append(b, c)
		} else {
			b, escaped = append(b, '=', hexDigits[c>>4], hexDigits[c&15]), true
		}
	}
	switch {
	case len(b) > maxKey:
		return "", fmt.Errorf("%w: it takes %d bytes in the bucket, and may take %d", ErrInvalidKey, len(b), maxKey)
	case !escaped:
		return key, nil
	}
	return string(b), nil
}

// plain reports whether byte i of key stands for itself in the bucket.
func plain(key string, i int) bool {
	switch c := key[i]; {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '/':
		return true
	case c == '.': // which separates tokens of a subject, and none may be empty
		return i > 0 && i < len(key)-1 && key[i-1] != '.'
	}
	return false
}

// decodeKey returns the key that the bucket stores under s, and false if there is none.
func decodeKey(s string) (string, bool) {
	if s == "=" {
		return "", true
	}
	if strings.IndexByte(s, '=') < 0 {
		e, err := encodeKey(s)
		return s, err == nil && e == s && s != ""
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '=' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		hi, lo := strings.IndexByte(hexDigits, s[i+1]), strings.IndexByte(hexDigits, s[i+2])
		if hi < 0 || lo < 0 {
			return "", false
		}
		b = append(b, byte(hi<<4|lo))
		i += 2
	}
	key := string(b)
	// Only one spelling of a key is its own.
	e, err := encodeKey(key)
	return key, err == nil && e == s
}
