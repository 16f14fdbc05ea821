//go:build !modelcheck

package broken

func beforeLoad(any) {}

func beforeStore(any) {}
