//! The first page, from the start of the server.

use std::env;

use testing::figures::Figures;

use crate::{
    page::{Painted, browser, now_ms},
    server_process::ServerProcess,
};

/// Starts a server with an empty cache, and then one with what the first has left there.
pub(crate) async fn measure(figures: &mut Figures) {
    let cache = tempfile::tempdir().unwrap();
    let setting = format!("AIRLOCK_SANDBOX__CACHE_DIR={}", cache.path().display());
    for start in ["the first start", "a later start"] {
        let browser = browser("").await;
        let began = now_ms();
        let server = ServerProcess::start_in(&env::temp_dir(), &["env", &setting], "").await;
        let ready = now_ms() - began;
        let page = Painted::of(&browser, &format!("http://{}/console", server.account)).await;
        let all = page.begun + page.painted - began;
        figures.add(&format!("first page painted, from {start} of the process"), format!("{all:.0} ms"), "≤ 1 s");
        figures.add(&format!("of that until the handler listens, {start}"), format!("{ready:.0} ms"), "");
        figures.add(
            &format!("of that the page alone, {start}"),
            format!("{:.0} ms, its first byte after {:.0} ms", page.painted, page.first_byte),
            "",
        );
    }
}
