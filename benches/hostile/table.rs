//! The figures of all attacks as a table in Markdown.

use std::fmt;

use testing::load::Taken;

use crate::attack::Measured;

/// Goals during each attack: p99 in multiples of that before it, minimum share of uplinks, and maximum memory.
const TIMES_MAX: f64 = 3.0;
const SHARE_MIN: f64 = 0.6;
const MEMORY_MAX_MB: f64 = 1000.0;

/// Figures of a busy neighbour.
pub(crate) struct Busy {
    pub(crate) p99_ms: f64,
    pub(crate) per_second: f64,
}

/// The figures of one attack.
pub(crate) struct Row {
    pub(crate) row: u8,
    pub(crate) name: &'static str,
    pub(crate) alone: Measured,
    pub(crate) beside: Measured,
    /// Resident memory before, at most, and ten seconds after the attack; nothing if the server has ended.
    pub(crate) memory_mb: f64,
    pub(crate) peak_mb: f64,
    pub(crate) after_mb: Option<f64>,
    /// Growth of the data directory.
    pub(crate) disk_mb: f64,
    pub(crate) descriptors: usize,
    /// Uplinks of the neighbour that were accepted and never delivered.
    pub(crate) lost: usize,
    /// Report of the attackers.
    pub(crate) done: String,
}

impl Busy {
    pub(crate) fn of(taken: &Taken) -> Self {
        Self { p99_ms: taken.quantile_ms(0.99), per_second: taken.per_second_of(200) }
    }
}

impl Row {
    /// Names the goals that are missed.
    fn failures(&self) -> Vec<&'static str> {
        let Self { alone, beside, .. } = self;
        let mut checks = vec![
            ("p99", beside.steady.p99_ms <= TIMES_MAX * alone.steady.p99_ms),
            ("uplinks", beside.steady.share >= SHARE_MIN),
            ("calls", beside.steady.refused <= alone.steady.refused),
            ("memory", self.peak_mb < MEMORY_MAX_MB),
            ("lost messages", self.lost == 0),
            ("ended", self.after_mb.is_some()),
        ];
        if let (Some(alone), Some(beside)) = (&alone.busy, &beside.busy) {
            checks.push(("p99 of a busy neighbour", beside.p99_ms <= TIMES_MAX * alone.p99_ms));
            // A fair share is a half.
            checks.push(("a busy neighbour's share", beside.per_second >= SHARE_MIN * alone.per_second / 2.0));
        }
        checks.into_iter().filter(|(_, holds)| !holds).map(|(what, _)| what).collect()
    }
}

/// Prints all rows.
pub(crate) fn print(rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    println!(
        "\n| row | attack | p99 alone → beside (÷) | delivered | other calls at most, refused | busy: p99 ÷, share of \
         half | memory: before, most, after | disk | descriptors | lost | the attack got | |"
    );
    println!("|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|---|---|");
    rows.iter().for_each(|row| println!("{row}"));
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { row, name, alone, beside, memory_mb, peak_mb, disk_mb, descriptors, lost, done, .. } = self;
        let (p99, quiet) = (beside.steady.p99_ms, alone.steady.p99_ms);
        let share = beside.steady.share * 100.0;
        let busy = match (&alone.busy, &beside.busy) {
            (Some(alone), Some(beside)) => {
                let share = beside.per_second / alone.per_second * 200.0;
                format!("{:.1}, {share:.0}%", beside.p99_ms / alone.p99_ms)
            }
            _ => String::new(),
        };
        let after = self.after_mb.map_or("ended".to_owned(), |after| format!("{after:.0} MB"));
        let failures = self.failures();
        let verdict = if failures.is_empty() { "holds".to_owned() } else { format!("**{}**", failures.join(", ")) };
        write!(
            out,
            "| {row} | {name} | {quiet:.1} → {p99:.1} ms ({:.1}) | {share:.0}% | {:.0} ms, {} | {busy} | \
             {memory_mb:.0}, {peak_mb:.0}, {after} | {disk_mb:.0} MB | {descriptors} | {lost} | {done} | {verdict} |",
            p99 / quiet,
            beside.steady.call_ms,
            beside.steady.refused,
        )
    }
}
