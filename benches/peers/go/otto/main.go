// Command otto measures codecs in otto, in one runtime (warm) or in a new one for each message (new).
package main

import (
	"errors"

	"airlock/peers/peer"
	"github.com/robertkrimen/otto"
)

func main() {
	peer.Serve("github.com/robertkrimen/otto", map[string]peer.Load{"warm": warm, "new": fresh})
}

// compile does once what a server would do once for each codec.
func compile(codec peer.Codec) ([]*otto.Script, error) {
	vm := otto.New()
	var scripts []*otto.Script
	for _, text := range []string{codec.Prelude, codec.Script, codec.Driver} {
		script, err := vm.Compile("", text)
		if err != nil {
			return nil, err
		}
		scripts = append(scripts, script)
	}
	return scripts, nil
}

// run returns the driver's function in a new runtime.
func run(scripts []*otto.Script) (peer.Decode, error) {
	vm := otto.New()
	var function otto.Value
	for _, script := range scripts {
		var err error
		if function, err = vm.Run(script); err != nil {
			return nil, err
		}
	}
	slice, err := vm.Run("(function (bytes) { return bytes.slice(0); })")
	if err != nil {
		return nil, err
	}
	return func(message peer.Message) (string, error) {
		// A slice of Go only looks like an array; the copy is one.
		bytes, err := slice.Call(otto.UndefinedValue(), message.Bytes)
		if err != nil {
			return "", err
		}
		json, err := function.Call(otto.UndefinedValue(), bytes, message.Port)
		if err != nil {
			return "", err
		}
		if !json.IsString() {
			return "", errors.New("no result")
		}
		return json.ToString()
	}, nil
}

func warm(codec peer.Codec) (peer.Decode, error) {
	scripts, err := compile(codec)
	if err != nil {
		return nil, err
	}
	return run(scripts)
}

func fresh(codec peer.Codec) (peer.Decode, error) {
	scripts, err := compile(codec)
	if err != nil {
		return nil, err
	}
	return func(message peer.Message) (string, error) {
		decode, err := run(scripts)
		if err != nil {
			return "", err
		}
		return decode(message)
	}, nil
}
