//! `airlock webhooks …`.

use super::CommandLine;
use crate::{
    delivery::webhooks::receiver::{Answer, Receiver},
    harness::Network,
    processes::outages::soon,
};

// Conformance: Webhooks from the command line
#[tokio::test(flavor = "multi_thread")]
async fn webhooks_are_set_listed_and_deleted() {
    let line = CommandLine::start().await;
    assert!(line.typed(&["webhooks", "list"]).contains("no webhooks"));
    let secret = line.network.dir.path().join("hook.secret");
    std::fs::write(&secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
    let url = "https://example.com/{app_id}/{event}";
    let secret = secret.display().to_string();
    let set = ["webhooks", "set", "my-hook", url, "--event", "up", "--header", "x-key: hush", "--secret-file", &secret];
    assert!(line.typed(&set).contains("Set webhook my-hook"));
    let listed = line.typed(&["webhooks", "list"]);
    for part in ["my-hook", url, "x-key", "yes"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    assert!(!listed.contains("hush"), "{listed}");
    let set = ["webhooks", "set", "my-hook", url, "--header-file", "-"];
    line.run_with_input(&set, "x-first: hush\n\nx-second: a: b\n");
    let listed = line.typed(&["webhooks", "list"]);
    assert!(listed.contains("x-first, x-second") && !listed.contains("hush"), "{listed}");
    let update = ["webhooks", "update", "my-hook", "--header-remove", "X-FIRST", "--header", "x-third: hush"];
    assert!(line.typed(&update).contains("Updated webhook my-hook"));
    let listed = line.typed(&["webhooks", "list"]);
    assert!(listed.contains(url) && listed.contains("x-second, x-third") && !listed.contains("x-first"), "{listed}");
    let (_, error) = line.refused(&["webhooks", "update", "my-hook", "--header-remove", "a", "--header", "A: b"], "");
    assert!(error.contains("cannot be both set and removed"), "{error}");
    let (_, error) = line.refused(&set, "x-first: hush\nhush\n");
    assert!(error.contains("line 2: a header has the form") && !error.contains("hush"), "{error}");
    assert!(line.typed(&["webhooks", "failed", "my-hook"]).contains("Webhook my-hook has delivered nothing yet"));
    assert!(line.typed(&["webhooks", "resend", "my-hook"]).contains("Sending 0 messages"));
    let (_, error) = line.refused(&["webhooks", "set", "my-hook", "http://127.0.0.1/"], "");
    assert!(error.contains("no public address"), "{error}");
    assert!(line.typed(&["webhooks", "delete", "my-hook", "--yes"]).contains("Deleted webhook my-hook"));
    let (_, error) = line.refused(&["webhooks", "failed", "my-hook"], "");
    assert!(error.contains("Webhook my-hook not found"), "{error}");
    line.network.stack.stop().await;
}

// Conformance: Webhooks from the command line
#[tokio::test(flavor = "multi_thread")]
async fn the_latest_deliveries_of_a_webhook_are_listed() {
    let network = Network::with(|settings| settings.output.delivery.allow_private_addresses = true).await;
    let (line, mut receiver) = (CommandLine::on(network), Receiver::start().await);
    line.typed(&["devices", "register", "dev-1"]);
    line.typed(&["webhooks", "set", "my-hook", &receiver.url(), "--event", "up"]);
    let listed = line.typed(&["webhooks", "deliveries", "my-hook"]);
    assert!(listed.contains("The handler remembers no deliveries of webhook my-hook"), "{listed}");
    receiver.answer([Answer::Status(400)]);
    for payload in ["01", "02"] {
        line.typed(&["devices", "simulate", "dev-1", payload]);
        receiver.next().await;
    }
    let rows = async || {
        let listed = line.typed(&["webhooks", "deliveries", "my-hook", "--output", "csv"]);
        // Without the time when each began, and the time that it took.
        let known = |row: &str| Some(row.split_once(',')?.1.rsplit_once(',')?.0.to_owned());
        listed.lines().map(|row| known(row).unwrap()).collect::<Vec<_>>()
    };
    let names = "dev_id,event,delivered,status,attempts";
    soon([names, "dev-1,up,true,200,1", "dev-1,up,false,400,1"].map(str::to_owned).to_vec(), rows).await;
    let listed = line.typed(&["webhooks", "deliveries", "my-hook"]);
    for part in ["  yes  ", "  no  ", "  200  ", " ms\n"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let exact = line.typed(&["webhooks", "deliveries", "my-hook", "--output", "csv"]);
    for (row, exact) in listed.lines().zip(exact.lines()).skip(1) {
        // Zones differ by whole minutes.
        assert_eq!((&row[15..18], &row[18..20]), (&exact[16..19], " ("), "{row}");
    }
    line.network.stack.stop().await;
}
