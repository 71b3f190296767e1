// Package peer measures codecs in a JavaScript engine as the bench `corpus` asks: a line comes in for each codec, and a
// line with the times and results goes out.
package peer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"time"
)

// The same as in benches/corpus/rounds.rs.
const (
	batch    = 1500 * time.Microsecond
	timesMax = 1000
)

// Message is a payload with its port.
type Message struct {
	Port  int   `json:"port"`
	Bytes []int `json:"bytes"`
}

// Codec has the scripts to run in order; Driver gives a function of bytes and port that returns JSON.
type Codec struct {
	Prelude  string    `json:"prelude"`
	Script   string    `json:"script"`
	Driver   string    `json:"driver"`
	Rounds   int       `json:"rounds"`
	Messages []Message `json:"messages"`
}

// Decode runs one message and returns JSON.
type Decode func(Message) (string, error)

// Load prepares a codec for one way of running it.
type Load func(Codec) (Decode, error)

type reply struct {
	BestUs   float64  `json:"best_us"`
	MedianUs float64  `json:"median_us"`
	Results  []string `json:"results,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// Serve answers requests in the way that the first argument names, after a line with the version of the module.
func Serve(module string, ways map[string]Load) {
	// otto prints to the standard output what a codec logs.
	out := os.Stdout
	os.Stdout = os.Stderr
	load := Load(nil)
	if len(os.Args) == 2 {
		load = ways[os.Args[1]]
	}
	if load == nil {
		fmt.Fprintln(os.Stderr, "usage: warm or new")
		os.Exit(2)
	}
	fmt.Fprintln(out, version(module))
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		text, err := json.Marshal(answer(load, line))
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(out, string(text))
	}
}

func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return fmt.Sprintf("%s %s, %s", module, dependency.Version, info.GoVersion)
		}
	}
	return module
}

func answer(load Load, line []byte) (answered reply) {
	defer func() {
		if reason := recover(); reason != nil {
			answered = reply{Error: fmt.Sprint("panic: ", reason)}
		}
	}()
	var codec Codec
	if err := json.Unmarshal(line, &codec); err != nil {
		return reply{Error: err.Error()}
	}
	decode, err := load(codec)
	if err != nil {
		return reply{Error: err.Error()}
	}
	var results []string
	for _, message := range codec.Messages {
		result, err := decode(message)
		if err != nil {
			return reply{Error: err.Error()}
		}
		results = append(results, result)
	}
	best, median := measure(decode, codec)
	return reply{BestUs: best, MedianUs: median, Results: results}
}

// measure returns microseconds per message, of the best and of the median batch.
func measure(decode Decode, codec Codec) (best, median float64) {
	clock(decode, codec.Messages, 1)
	once := clock(decode, codec.Messages, 1)
	times := min(max(int(batch/max(once, 1)), 1), timesMax)
	var batches []float64
	for range codec.Rounds {
		took := clock(decode, codec.Messages, times)
		batches = append(batches, float64(took.Nanoseconds())/1000/float64(times*len(codec.Messages)))
	}
	slices.Sort(batches)
	return batches[0], batches[len(batches)/2]
}

func clock(decode Decode, messages []Message, times int) time.Duration {
	start := time.Now()
	for range times {
		for _, message := range messages {
			if _, err := decode(message); err != nil {
				panic(err)
			}
		}
	}
	return time.Since(start)
}
