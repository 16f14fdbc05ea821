//go:build gc

#include "textflag.h"

// func Token() uintptr
TEXT ·Token(SB), NOSPLIT, $0-8
	MOVQ (TLS), AX
	MOVQ AX, ret+0(FP)
	RET
