//! Figures with their aims, and how they are taken.

use std::time::Duration;

/// Figures in the order in which they were taken.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<[String; 3]>,
}

impl Table {
    /// Adds a figure; an empty aim is none.
    pub(crate) fn add(&mut self, what: &str, figure: impl Into<String>, aim: &str) {
        let row = [what.to_owned(), figure.into(), aim.to_owned()];
        println!("{}: {} {}", row[0], row[1], row[2]);
        self.rows.push(row);
    }

    /// Prints all of them.
    pub(crate) fn print(&self) {
        println!("\n| figure | | aim |\n|---|--:|--:|");
        for [what, figure, aim] in &self.rows {
            println!("| {what} | {figure} | {aim} |");
        }
    }
}

/// The value below which this part of all lies.
pub(crate) fn quantile<T: Copy + PartialOrd>(values: &mut [T], part: f64) -> T {
    values.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap());
    values[((values.len() - 1) as f64 * part).round() as usize]
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub(crate) fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// What this process has in memory, in MiB.
pub(crate) fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// The page faults that this process has met.
pub(crate) fn faults() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(7).unwrap().parse().unwrap()
}
