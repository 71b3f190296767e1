//! The cost of many applications: memory per idle application, the first message of one that is not hot, thousands that
//! take turns, and saving functions until they can run.
//!
//! `AIRLOCK_CORPUS` names a directory of codec records (see `docs/functions.md`); the default is our own. Each
//! application gets a codec and a comment of its own, so that no two are the same.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod codecs;
mod many;
mod one;
#[path = "../shared/codecs.rs"]
mod records;

use std::sync::Arc;

use runtime::{Engine, Settings};

use testing::figures::Figures;

/// Applications that take turns, if `DENSITY_APPLICATIONS` does not say otherwise.
const APPLICATIONS: usize = 10_000;

/// An engine without a disk cache, with this many hot function sets per worker.
fn engine(hot_max: usize) -> Arc<Engine> {
    Arc::new(Engine::new(&Settings { hot_max, hot_after: 1, ..Settings::default() }).unwrap())
}

fn main() {
    let codecs = one::usable(codecs::read());
    let applications = std::env::var_os("DENSITY_APPLICATIONS");
    let applications = applications.map_or(APPLICATIONS, |text| text.to_str().unwrap().parse().unwrap());
    let mut figures = Figures::default();
    println!("{} codecs, {applications} applications", codecs.len());
    one::idle(&mut figures, &codecs);
    one::saving(&mut figures, &codecs);
    one::spread(&mut figures, &codecs);
    many::on_one_thread(&mut figures, &codecs, applications);
    many::in_the_handler(&mut figures, &codecs, applications);
    figures.print();
}
