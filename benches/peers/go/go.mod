module airlock/peers

go 1.25.0

require (
	github.com/dop251/goja v0.0.0-20260822123354-58e940e0d230
	github.com/robertkrimen/otto v0.5.2-0.20250613160831-3ca729876b89
)
