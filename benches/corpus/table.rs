//! Prints the results with their goals.

use crate::rounds::Timing;
use testing::figures::{mean, median};

/// The timings of each codec by column; `None` if the variant was skipped or does not support the codec.
pub(crate) struct Table {
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<(String, Vec<Option<Timing>>)>,
}

/// A ratio of two columns with its goal.
pub(crate) struct Goal {
    pub(crate) what: &'static str,
    pub(crate) over: &'static str,
    pub(crate) under: &'static str,
    pub(crate) goal: &'static str,
}

/// The quotients of two columns: of their medians, of their means, and the median of those of each codec.
struct Ratio {
    medians: f64,
    means: f64,
    each: f64,
}

type Pick = fn(&Timing) -> f64;
const PICKS: [(&str, Pick); 2] = [("best batch", |timing| timing.best), ("median batch", |timing| timing.median)];

impl Table {
    /// Prints columns, goals, and the codecs that are furthest from the first goal.
    pub(crate) fn print(&self, goals: &[Goal]) {
        for (name, pick) in PICKS {
            println!("\n{} codecs, {name} of each, µs per message\n", self.rows.len());
            println!("| way | codecs | median | mean | ÷ fresh: median | mean |\n|---|--:|--:|--:|--:|--:|");
            self.columns.iter().for_each(|column| self.print_way(column, pick));
            println!("\n| figure | median ÷ median | mean ÷ mean | median of ratios | goal |\n|---|--:|--:|--:|--:|");
            goals.iter().for_each(|goal| self.print_goal(goal, pick));
        }
        if let Some(goal) = goals.first() {
            self.print_worst(goal);
        }
    }

    /// Prints the times of a way, and what it takes relative to a fresh sandbox on the codecs that run in both.
    fn print_way(&self, column: &str, pick: Pick) {
        let mut all: Vec<f64> = self.pairs(column, column, pick).map(|(_, value, _)| value).collect();
        if all.is_empty() {
            return;
        }
        print!("| {column} | {} | {:.2} | {:.2} |", all.len(), median(&mut all), mean(&all));
        match self.ratio(column, "fresh", pick) {
            Some(ratio) => println!(" {:.2} | {:.2} |", ratio.medians, ratio.means),
            None => println!(" | |"),
        }
    }

    fn print_goal(&self, goal: &Goal, pick: Pick) {
        match self.ratio(goal.over, goal.under, pick) {
            Some(Ratio { medians, means, each }) => {
                println!("| {} | {medians:.3} | {means:.3} | {each:.3} | {} |", goal.what, goal.goal);
            }
            None => println!("| {} | not measured | | | {} |", goal.what, goal.goal),
        }
    }

    /// Two columns compared on the codecs that have both; `None` if no codec has.
    fn ratio(&self, over: &str, under: &str, pick: Pick) -> Option<Ratio> {
        let (mut overs, mut unders, mut each) = (Vec::new(), Vec::new(), Vec::new());
        for (_, a, b) in self.pairs(over, under, pick) {
            overs.push(a);
            unders.push(b);
            each.push(a / b);
        }
        (!each.is_empty()).then(|| Ratio {
            medians: median(&mut overs) / median(&mut unders),
            means: mean(&overs) / mean(&unders),
            each: median(&mut each),
        })
    }

    fn print_worst(&self, goal: &Goal) {
        let mut rows: Vec<_> = self.pairs(goal.over, goal.under, PICKS[0].1).collect();
        rows.sort_by(|(_, a, b), (_, c, d)| (c / d).total_cmp(&(a / b)));
        println!(
            "\nFurthest from the first goal (best batch):\n\n| codec | {} | {} | ratio |\n|---|--:|--:|--:|",
            goal.over, goal.under
        );
        for (id, over, under) in rows.iter().take(5) {
            println!("| {id} | {over:.2} | {under:.2} | {:.2} |", over / under);
        }
    }

    /// The codecs with a value in both columns.
    fn pairs<'a>(&'a self, over: &str, under: &str, pick: Pick) -> impl Iterator<Item = (&'a str, f64, f64)> {
        let index = |name: &str| self.columns.iter().position(|column| *column == name);
        let indices = index(over).zip(index(under));
        self.rows.iter().filter_map(move |(id, timings)| {
            let (over, under) = indices?;
            Some((id.as_str(), pick(timings[over].as_ref()?), pick(timings[under].as_ref()?)))
        })
    }

    /// The best batches as tab-separated values, one line per codec, to compare two runs.
    pub(crate) fn tsv(&self) -> String {
        let mut text = format!("codec\t{}\n", self.columns.join("\t"));
        for (id, timings) in &self.rows {
            let cells =
                timings.iter().map(|timing| timing.map_or(String::new(), |timing| format!("{:.3}", timing.best)));
            text += &format!("{id}\t{}\n", cells.collect::<Vec<_>>().join("\t"));
        }
        text
    }
}
