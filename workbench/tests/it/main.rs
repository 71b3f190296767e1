//! The workbench over files as people keep them: five layouts, real reports, and the corpus.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, missing_docs, unreachable_pub)]

mod bench;
mod corpus;
mod coverage;
mod files;
mod fuzz;
mod lint;
mod lint_cases;
mod lint_kinds;
mod port;
mod reports;
mod support;
