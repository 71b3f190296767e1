// Command goja measures codecs in goja, in one runtime (warm) or in a new one for each message (new).
package main

import (
	"errors"

	"airlock/peers/peer"
	"github.com/dop251/goja"
)

func main() {
	peer.Serve("github.com/dop251/goja", map[string]peer.Load{"warm": warm, "new": fresh})
}

// compile does once what a server would do once for each codec.
func compile(codec peer.Codec) ([]*goja.Program, error) {
	var programs []*goja.Program
	for _, text := range []string{codec.Prelude, codec.Script, codec.Driver} {
		program, err := goja.Compile("", text, false)
		if err != nil {
			return nil, err
		}
		programs = append(programs, program)
	}
	return programs, nil
}

// run returns the driver's function in a new runtime.
func run(programs []*goja.Program) (peer.Decode, error) {
	vm := goja.New()
	var last goja.Value
	for _, program := range programs {
		var err error
		if last, err = vm.RunProgram(program); err != nil {
			return nil, err
		}
	}
	function, ok := goja.AssertFunction(last)
	if !ok {
		return nil, errors.New("the driver is no function")
	}
	return func(message peer.Message) (string, error) {
		items := make([]any, len(message.Bytes))
		for i, item := range message.Bytes {
			items[i] = item
		}
		json, err := function(goja.Undefined(), vm.NewArray(items...), vm.ToValue(message.Port))
		if err != nil {
			return "", err
		}
		text, ok := json.Export().(string)
		if !ok {
			return "", errors.New("no result")
		}
		return text, nil
	}, nil
}

func warm(codec peer.Codec) (peer.Decode, error) {
	programs, err := compile(codec)
	if err != nil {
		return nil, err
	}
	return run(programs)
}

func fresh(codec peer.Codec) (peer.Decode, error) {
	programs, err := compile(codec)
	if err != nil {
		return nil, err
	}
	return func(message peer.Message) (string, error) {
		decode, err := run(programs)
		if err != nil {
			return "", err
		}
		return decode(message)
	}, nil
}
