//! The time after which devices count as silent, in the console.

use std::time::Duration;

use crate::{console::visitor, harness::Network};

const PATH: &str = "/console/applications/alice-app/silence";

#[tokio::test]
async fn a_time_is_set_and_shown_and_taken_away() {
    let network = Network::start().await;
    let (_alice, visitor) = visitor(&network).await;
    assert!(visitor.get("/console/applications/alice-app").await.html.contains(&format!("href=\"{PATH}\"")));
    assert_eq!(visitor.get(PATH).await.value("after"), "");
    for (typed, shown) in [("120m", "2h"), ("", ""), (" 7d ", "7d"), ("off", "")] {
        let page = visitor.post(PATH, &[("after", typed)]).await;
        assert!(page.html.contains("Saved.") && page.value("after") == shown, "{typed}: {}", page.html);
        assert_eq!(visitor.get(PATH).await.value("after"), shown);
    }
}

#[tokio::test]
async fn what_is_no_time_is_refused_and_stays_in_the_form() {
    let network = Network::start().await;
    let (_alice, visitor) = visitor(&network).await;
    visitor.post(PATH, &[("after", "2h")]).await;
    for typed in ["59s", "often"] {
        let page = visitor.post(PATH, &[("after", typed)]).await;
        assert!(page.status == 400 && page.html.contains("a time from 1m to 366d"), "{typed}: {}", page.html);
        assert_eq!(page.value("after"), typed);
    }
    assert_eq!(visitor.get(PATH).await.value("after"), "2h");
}

#[tokio::test]
async fn a_time_that_was_typed_comes_back_after_the_login() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (_alice, visitor) = visitor(&network).await;
    clock.advance(Duration::from_secs(2 * 3600));
    let page = visitor.post(PATH, &[("after", "3h")]).await;
    assert!(
        page.path.starts_with("/console/drafts/") && page.html.contains("may not have been saved"),
        "{}",
        page.html
    );
    assert_eq!(page.value("after"), "3h");
}
