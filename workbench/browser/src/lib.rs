//! The workbench as a module for web pages: its own sources, with a `runtime` that runs functions in the sandbox of the
//! page.

mod added;
mod answer;
mod difference;
mod exports;
mod new_examples;
mod page_files;
mod submitted;
mod tree;
mod uplink_example;
#[path = "../../src"]
#[allow(dead_code, unreachable_pub, reason = "compiled into the server as well, which uses the rest")]
mod workbench {
    pub(crate) mod codec;
    pub(crate) mod file;
    pub(crate) mod fuzz;
    pub(crate) mod layout;
    pub(crate) mod lint;
    pub(crate) mod port;
    pub(crate) mod report;
    pub(crate) mod run {
        pub(crate) mod codec;
        pub(crate) mod fault;
        pub(crate) mod update;
        #[path = "../../browser/src/one_thread.rs"]
        pub(crate) mod worker_pool;
    }
    pub(crate) mod text;
}

use workbench::{codec, file, fuzz, layout, lint, port, report, run, text};
