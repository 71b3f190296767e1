//! Functions that a share of the devices tries, in the console.

use std::time::Duration;

use api::version::Results;
use tokio::time::sleep;
use types::{Kind, Kinded};

use super::{
    DECODER,
    visitor::{Page, Visitor},
};
use crate::harness::{Network, Owner};

const PATH: &str = "/console/applications/alice-app/functions";
const CANDIDATE: &str = "/console/applications/alice-app/functions/candidate";
const TRIED: &str = "function Decoder(bytes) { return { celsius: bytes[0] / 100 }; }";
const FAILING: &str = "function Decoder(bytes) { throw new Error('</p><script>'); }";
/// Enough that some have functions that half of them try, and some do not.
const DEVICES: usize = 12;
/// Between two looks at what is to change.
const PAUSE: Duration = Duration::from_millis(50);

async fn visitor(network: &Network) -> (Owner, Visitor) {
    let (alice, visitor) = super::visitor(network).await;
    for number in 2..=DEVICES {
        alice.add_device(&format!("dev-{number}")).await;
    }
    (alice, visitor)
}

async fn save(visitor: &Visitor, decoder: &str, share: &str) -> Page {
    let form = [("do", "share"), ("base", "1"), ("payload_format", "custom"), ("decoder", decoder), ("share", share)];
    visitor.post(PATH, &form).await
}

async fn simulate_all(alice: &Owner) {
    for number in 1..=DEVICES {
        alice.simulate(&format!("dev-{number}"), &[7, 8], 1).await.unwrap();
    }
}

/// Returns the results of both versions once an uplink of each device is counted: later than it is processed.
async fn counted(alice: &Owner) -> (Results, Results) {
    loop {
        let state = alice.handler.get_candidate(&alice.app_id).await.unwrap();
        let (tried, live) = (state.results.unwrap_or_default(), state.live_results.unwrap_or_default());
        if tried.uplinks + live.uplinks >= DEVICES as u64 {
            return (tried, live);
        }
        sleep(PAUSE).await;
    }
}

/// Sends uplinks until the candidate has ended.
async fn abandoned(alice: &Owner) {
    while alice.handler.get_candidate(&alice.app_id).await.is_ok() {
        simulate_all(alice).await;
        sleep(PAUSE).await;
    }
}

// Conformance: console: functions for a share of the devices, promoted, abandoned
#[tokio::test]
async fn a_share_of_the_devices_gets_functions_that_are_then_promoted() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let page = save(&visitor, TRIED, "50%").await;
    assert!(
        page.html.contains("Rollout started.") && page.html.contains("Gradual rollout of version 2"),
        "{}",
        page.html
    );
    simulate_all(&alice).await;
    let (tried, live) = testing::soon("all are counted", counted(&alice)).await;
    assert_eq!((tried.uplinks + live.uplinks, tried.failed), (DEVICES as u64, 0));

    let page = visitor.get(PATH).await;
    assert_eq!(page.typed("decoder"), DECODER, "the form has what is live");
    for uplinks in [tried.uplinks, live.uplinks] {
        assert!(page.html.contains(&format!(">{uplinks}<span")), "{uplinks}: {}", page.html);
    }
    for fuel in [tried.mean_fuel, live.mean_fuel] {
        assert!((1000..1_000_000).contains(&fuel), "{fuel}");
        let fuel = format!("{},{:03}", fuel / 1000, fuel % 1000);
        assert!(page.html.contains(&format!(">{fuel}</td>")), "{fuel}: {}", page.html);
    }
    let versions = visitor.get("/console/applications/alice-app/versions").await;
    assert!(versions.html.contains("50% of the devices"), "{}", versions.html);
    let version = visitor.get(&versions.link("Version 2")).await;
    assert!(version.html.contains("promote or abandon it") && !version.html.contains("/restore"), "{}", version.html);

    let change = [("do", "share"), ("version", "2"), ("share", "90"), ("margin", "1.5"), ("uplinks_min", "7")];
    let page = visitor.post(CANDIDATE, &change).await;
    assert!(page.html.contains("Share changed") && page.html.contains(">90%</td>"), "{}", page.html);
    let trial = alice.handler.get_candidate(&alice.app_id).await.unwrap().trial.unwrap();
    assert_eq!((trial.share_percent, trial.margin_percent, trial.uplinks_min), (90.0, Some(1.5), Some(7)));

    let page = visitor.post(CANDIDATE, &[("do", "promote"), ("version", "2")]).await;
    assert!(page.html.contains("Promoted.") && page.typed("decoder") == TRIED, "{}", page.html);
    assert_eq!(alice.handler.get_version(&alice.app_id, 0).await.unwrap().number, 2);
}

// Conformance: console: functions for a share of the devices, promoted, abandoned
#[tokio::test]
async fn functions_that_are_abandoned_by_themselves_say_why() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    save(&visitor, FAILING, "50").await;
    let change = |uplinks_min| {
        [("do", "share"), ("version", "2"), ("share", "50"), ("margin", "5"), ("uplinks_min", uplinks_min)]
    };
    // It is not judged before it was looked at.
    visitor.post(CANDIDATE, &change("1000")).await;
    simulate_all(&alice).await;
    let page = visitor.until(PATH, "(100%)").await;
    assert!(page.html.contains("tr class=\"failed\""), "{}", page.html);
    visitor.post(CANDIDATE, &change("5")).await;
    testing::soon("its end", abandoned(&alice)).await;
    let page = visitor.get(PATH).await;
    for expected in
        ["was abandoned</h2>", "all devices have version 1 again: it failed on", "Or let a share of the devices"]
    {
        assert!(page.html.contains(expected), "{expected}: {}", page.html);
    }
    let failed = visitor.get(&page.link("Uplinks that failed")).await;
    assert!(failed.html.contains("class=\"failed\"") && !failed.html.contains("<script>"), "{}", failed.html);
    let versions = visitor.get("/console/applications/alice-app/versions").await;
    assert_eq!(versions.html.matches(">abandoned</span>").count(), 1, "{}", versions.html);
    let version = visitor.get(&versions.link("Version 2")).await;
    for expected in ["Automatically, <time", "it failed on", "more than 5 percentage points"] {
        assert!(version.html.contains(expected), "{expected}: {}", version.html);
    }
    assert_eq!(version.link("Uplinks that failed"), page.link("Uplinks that failed"));
}

// Conformance: console: functions for a share of the devices, promoted, abandoned
#[tokio::test]
async fn a_share_that_is_not_valid_is_refused_and_what_was_typed_stays() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    for share in ["", "half", "0", "100", "<b>"] {
        let page = save(&visitor, TRIED, share).await;
        assert_eq!((page.status, page.typed("decoder").as_str()), (400, TRIED), "{share}: {}", page.html);
        assert!(page.html.contains("role=\"alert\"") && !page.html.contains("<b>"), "{share}: {}", page.html);
    }
    assert_eq!(alice.handler.get_candidate(&alice.app_id).await.unwrap_err().kind(), Kind::NotFound);
    save(&visitor, TRIED, "5").await;
    for (share, margin, uplinks) in [("101", "", ""), ("7", "x", ""), ("7", "", "0"), ("7", "", "-1")] {
        let form = [("do", "share"), ("version", "2"), ("share", share), ("margin", margin), ("uplinks_min", uplinks)];
        let page = visitor.post(CANDIDATE, &form).await;
        assert_eq!((page.status, page.value("share").as_str()), (400, share), "{}", page.html);
    }
    assert_eq!(alice.handler.get_candidate(&alice.app_id).await.unwrap().trial.unwrap().share_percent, 5.0);
}

// Conformance: console: functions for a share of the devices, promoted, abandoned
#[tokio::test]
async fn nobody_promotes_another_version_than_the_one_they_see() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    save(&visitor, TRIED, "5").await;
    alice.handler.abandon_candidate(&alice.app_id).await.unwrap();
    let gone = visitor.post(CANDIDATE, &[("do", "promote"), ("version", "2")]).await;
    assert_eq!(gone.status, 409, "{}", gone.html);
    assert!(gone.html.contains("ersion 2 is no longer being rolled out"), "{}", gone.html);
    save(&visitor, FAILING, "5").await;
    for action in ["promote", "abandon", "share"] {
        let page = visitor.post(CANDIDATE, &[("do", action), ("version", "2"), ("share", "9")]).await;
        assert_eq!(page.status, 409, "{action}: {}", page.html);
        assert!(page.html.contains("Gradual rollout of version 3"), "{}", page.html);
    }
    let page = visitor.post(CANDIDATE, &[("do", "abandon"), ("version", "3")]).await;
    assert!(page.html.contains("Abandoned.") && page.html.contains("The rollout of version"), "{}", page.html);
    assert_eq!(alice.handler.get_version(&alice.app_id, 0).await.unwrap().number, 1);
}
