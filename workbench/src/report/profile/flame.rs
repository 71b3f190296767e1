//! Renders a profile as a flame graph: an SVG that any browser shows, without scripts.

use std::fmt::Write as _;

use runtime::sanitize;

use super::{Chain, Profile};
use crate::report::format::escape::escape;

const WIDTH: f64 = 1200.0;
const ROW: usize = 20;
const MARGIN: usize = 30;
/// Narrower boxes are left out.
const WIDTH_MIN: f64 = 0.3;
/// The width of a character of the labels.
const CHARACTER: f64 = 7.0;
/// The depth of calls that is shown.
const ROWS_MAX: usize = 60;

/// One box.
struct Frame {
    left: f64,
    width: f64,
    depth: usize,
    label: String,
    fuel: u64,
    /// From 0 to 359.
    hue: u32,
}

impl Profile {
    /// The flame graph. Each box is a function, as wide as the fuel that it used with what it called, which lies above it.
    pub fn flame_graph(&self) -> String {
        let frames = self.frames();
        let rows = frames.iter().map(|frame| frame.depth + 1).max().unwrap_or(1);
        let height = rows * ROW + 2 * MARGIN;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" role=\"img\" aria-labelledby=\"title\" font-family=\"monospace\" font-size=\"12\">\n\
             <title id=\"title\">Fuel by function: {} in total</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"4\" y=\"20\" fill=\"#222\">Fuel by function: {} in total. Point at a box for its figures.</text>\n",
            self.fuel, self.fuel
        );
        for frame in &frames {
            let top = height - MARGIN - (frame.depth + 1) * ROW;
            self.push_frame(&mut svg, frame, top);
        }
        svg + "</svg>\n"
    }

    fn push_frame(&self, svg: &mut String, frame: &Frame, top: usize) {
        let Frame { left, width, label, fuel, hue, .. } = frame;
        let label = escape(label);
        _ = writeln!(
            svg,
            "<g><title>{label}: {fuel} units of fuel, {:.1}%</title><rect x=\"{left:.1}\" y=\"{top}\" \
             width=\"{width:.1}\" height=\"{}\" fill=\"hsl({hue} 70% 80%)\" stroke=\"#fff\"/>",
            self.percent(*fuel),
            ROW - 1
        );
        let room = (width / CHARACTER) as usize;
        if room >= 3 {
            let shown: String = frame.label.chars().take(room - 1).collect();
            _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\" fill=\"#222\">{}</text>",
                left + 3.0,
                top + 14,
                escape(&shown)
            );
        }
        svg.push_str("</g>\n");
    }

    fn frames(&self) -> Vec<Frame> {
        let scale = WIDTH / self.fuel.max(1) as f64;
        let mut frames = vec![Frame::new("all", 0.0, WIDTH, 0, self.fuel)];
        // Where the next callee of each chain begins, and how deep it is.
        let mut next: Vec<(f64, usize)> = Vec::new();
        let mut next_outermost = 0.0;
        for chain in &self.chains {
            let width = chain.total as f64 * scale;
            let (left, depth) = match chain.caller.map(|caller| next[caller]) {
                Some((left, depth)) => (left, depth + 1),
                None => (next_outermost, 1),
            };
            match chain.caller {
                Some(caller) => next[caller].0 += width,
                None => next_outermost += width,
            }
            next.push((left, depth));
            if width >= WIDTH_MIN && depth < ROWS_MAX {
                frames.push(Frame::new(&chain.label(), left, width, depth, chain.total));
            }
        }
        let outside = self.outside as f64 * scale;
        frames.push(Frame::new("the sandbox: payload in, result out", next_outermost, outside, 1, self.outside));
        frames
    }
}

impl Chain {
    /// As in `decode (decoder:12)`.
    pub(super) fn label(&self) -> String {
        format!("{} ({}:{})", sanitize(&self.name), self.source, self.line)
    }
}

impl Frame {
    fn new(label: &str, left: f64, width: f64, depth: usize, fuel: u64) -> Self {
        // The same function has the same colour everywhere: from red to yellow, as in other flame graphs.
        let hash = label.bytes().fold(17_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
        Self { left, width, depth, label: label.to_owned(), fuel, hue: hash % 60 }
    }
}
