//! The histogram of times: where its bars lie. A template draws it, and a table has the quantiles for those who do not
//! see it.

use super::statistics::Histogram;

/// The size of the plot in the template, in pixels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 180.0;
/// Room for a name to the right of where it begins.
const NAME: f64 = 48.0;

/// The number of messages with similar times.
pub(super) struct Bar {
    pub(super) title: String,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    /// The time at which it begins, if there is room below it.
    pub(super) name: Option<String>,
}

/// The bars, each of more time than the one before by the same factor.
pub(super) fn bars(histogram: &Histogram) -> Vec<Bar> {
    let bars = histogram.bars();
    let highest = bars.iter().map(|(.., count)| *count).max().unwrap_or(1);
    let all: usize = bars.iter().map(|(.., count)| count).sum();
    let width = WIDTH / bars.len().max(1) as f64;
    let step = (bars.len() / 8).max(1);
    let bars = bars.into_iter().enumerate().map(|(index, (from, to, count))| {
        let (x, height) = (index as f64 * width, HEIGHT * count as f64 / highest as f64);
        let percent = 100.0 * count as f64 / all.max(1) as f64;
        Bar {
            title: format!("{from:.2} to {to:.2} µs: {count} messages, {percent:.1}%"),
            x,
            y: HEIGHT - height,
            width: (width - 1.0).max(0.5),
            height,
            name: (index % step == 0 && x + NAME <= WIDTH).then(|| time(from)),
        }
    });
    bars.collect()
}

fn time(microseconds: f64) -> String {
    match microseconds {
        long if long >= 1000.0 => format!("{:.1} ms", long / 1e3),
        short if short < 10.0 => format!("{short:.1} µs"),
        middle => format!("{middle:.0} µs"),
    }
}
