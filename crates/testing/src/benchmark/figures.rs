//! Benchmark figures and their goals.
#![allow(clippy::print_stdout, reason = "benches print their figures")]

use std::time::Duration;

/// Figures in the order in which they were measured.
#[derive(Default)]
pub struct Figures {
    rows: Vec<[String; 3]>,
}

impl Figures {
    /// Adds a figure; an empty goal means none.
    pub fn add(&mut self, what: &str, measured: impl Into<String>, goal: &str) {
        let row = [what.to_owned(), measured.into(), goal.to_owned()];
        println!("{}: {} {}", row[0], row[1], row[2]);
        self.rows.push(row);
    }

    /// Prints the figures as a table.
    pub fn print(&self) {
        println!("\n| figure | measured | goal |\n|---|--:|--:|");
        for [what, measured, goal] in &self.rows {
            println!("| {what} | {measured} | {goal} |");
        }
    }
}

/// The value below which this fraction of all values lies. Sorts them.
pub fn quantile<T: Copy + PartialOrd>(values: &mut [T], part: f64) -> T {
    values.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap());
    values[((values.len() - 1) as f64 * part).round() as usize]
}

/// The median; sorts `values`.
pub fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}

/// The arithmetic mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// `time` in microseconds.
pub fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
