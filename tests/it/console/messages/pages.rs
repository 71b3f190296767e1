//! One message in a real browser: the playground with its bytes, and the map of its gateways.

use airlock::settings::Settings;
use api::gateway::{LocationMetadata, RxMetadata};

use crate::{
    browser::{DESK, console::wait_for_text, driver::Look},
    console::{
        browsing::{ask, logged_in},
        newest, visitor,
        visitor::Visitor,
    },
    harness::{Network, Owner},
    networks::network_brokers::{
        linked_with,
        messages::{Kind, frame, uplink},
    },
};

#[tokio::test]
async fn a_message_is_opened_in_the_playground_with_the_version_that_ran() {
    let network = Network::start().await;
    let (alice, _visitor) = visitor(&network).await;
    alice.simulate("dev-1", &[8], 3).await.unwrap();
    let id = newest(&alice).await;
    // A later version must not be the one that is opened.
    alice.set_functions(["function Decoder() { return { later: true }; }", "", ""]).await.unwrap();
    let Some(browser) = logged_in(&network, "message", Look { width: 1280, ..DESK }).await else { return };
    browser.open(&format!("/console/applications/alice-app/messages/{id}")).await;
    browser.look("message").await;
    browser.click("a[href^='/console/playground/#']").await;
    wait_for_text(&browser, "*[@id='verdict']", "Failed").await;
    wait_for_text(&browser, "*[@id='outcome']", "The decoder failed (line 3, column").await;
    assert_eq!(browser.value("#payloads").await, "3: 08");
    assert_eq!(browser.value("#text").await, crate::console::DECODER);
    browser.look("message-playground").await;
}

/// The number of words in some elements, and those that are broken although they have room on a line.
const BROKEN_WORDS: &str = "const [range, words] = [document.createRange(), []]; \
     for (const element of document.querySelectorAll(arguments[0])) for (const node of element.childNodes) { \
     if (node.nodeType !== Node.TEXT_NODE) continue; \
     for (const { 0: word, index } of node.data.matchAll(/\\S+/g)) if (word.length <= 30) { \
     range.setStart(node, index); range.setEnd(node, index + word.length); \
     words.push([word, range.getClientRects().length > 1]); } } \
     return [words.length, words.filter(([, isBroken]) => isBroken)];";

// Conformance: console: devices, messages, downlinks
#[tokio::test]
async fn fields_are_broken_between_words_on_a_phone() {
    let network = Network::start().await;
    let (alice, _visitor) = visitor(&network).await;
    let decoder = "function Decoder() {
        return { temperature: 20.99, description: 'soil', greenhouse: 'northwest', calibrated: true, serial: 'AB'.repeat(60) };
    }";
    alice.set_functions([decoder, "", ""]).await.unwrap();
    alice.simulate("dev-1", &[8], 3).await.unwrap();
    let message = format!("messages/{}", newest(&alice).await);
    let Some(browser) = logged_in(&network, "fields-phone", Look { width: 375, ..DESK }).await else { return };
    for (path, heading, part) in
        [("messages", "Messages", "td.wide"), (message.as_str(), "Message from dev-1", "section > pre")]
    {
        browser.open(&format!("/console/applications/alice-app/{path}")).await;
        browser.wait_for(heading).await;
        let found = browser.client.execute(BROKEN_WORDS, vec![part.into()]).await.unwrap();
        assert!(found[0].as_u64().unwrap() > 3 && found[1] == serde_json::json!([]), "{path}: {found}");
        // What is too long for a line does not widen the page.
        browser.look("fields").await;
    }
}

#[tokio::test]
async fn times_are_local_and_exact_in_their_titles() {
    let network = Network::start().await;
    let (alice, _visitor) = visitor(&network).await;
    alice.simulate("dev-1", &[8, 52], 3).await.unwrap();
    let Some(browser) = logged_in(&network, "message-times", DESK).await else { return };
    browser.tell("Emulation.setTimezoneOverride", serde_json::json!({"timezoneId": "Asia/Kolkata"})).await;
    browser.open("/console/applications/alice-app/messages").await;
    let script = "const { title, dateTime, textContent } = document.querySelector('td.when time');
        const at = (timeZone) => new Date(dateTime).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium', timeZone });
        return [title, dateTime, textContent, at('Asia/Kolkata'), at('UTC')];";
    let [title, exact, shown, there, universal]: [String; 5] =
        serde_json::from_value(ask(&browser, script).await).unwrap();
    assert_eq!((title, &shown), (exact, &there));
    assert_ne!(shown, universal);
}

/// An uplink that two gateways have received, and whose device is registered with a location.
pub(super) async fn located(change: impl FnOnce(&mut Settings)) -> (Network, Owner, String) {
    let (network, alice, broker) = linked_with("alice", change).await;
    let device = alice.handler.get_device(&alice.app_id, &"dev-1".parse().unwrap()).await.unwrap();
    let device = api::handler::Device { latitude: 52.4, longitude: 13.1, ..device };
    alice.handler.set_device(device).await.unwrap();
    let mut sent = uplink(&alice.app_id, "dev-1", frame(Kind::Unconfirmed, 3), 3);
    let mut other = RxMetadata { gateway_id: "<b>gateway-2".to_owned(), ..sent.gateway_metadata[0].clone() };
    other.location = other.location.map(|location| LocationMetadata { latitude: 52.45, ..location });
    sent.gateway_metadata.push(other);
    broker.send(sent).await;
    let visitor = Visitor::logged_in(&network.stack.settings().client.auth_server, "alice").await;
    visitor.until("/console/applications/alice-app/messages?kind=up", "<td class=\"when\">").await;
    let path = format!("/console/applications/alice-app/messages/{}", newest(&alice).await);
    (network, alice, path)
}

/// The map in a browser: its marks are in it, and as far apart as their positions are.
async fn map(name: &'static str, look: Look) {
    let (network, _alice, path) = located(|_| ()).await;
    let Some(browser) = logged_in(&network, name, look).await else { return };
    browser.open(&path).await;
    wait_for_text(&browser, "h2", "Map").await;
    browser.look("message-map").await;
    let script = "const inside = document.querySelector('.map svg').getBoundingClientRect();
        return [...document.querySelectorAll('.map .mark')].map((mark) => {
            const { left, right, top, bottom } = mark.getBoundingClientRect();
            const isIn = left > inside.left && right < inside.right && top > inside.top && bottom < inside.bottom;
            return [isIn, mark.querySelector('text').textContent, Math.round((left + right) / 2)];
        });";
    let marks: Vec<(bool, String, i64)> = serde_json::from_value(ask(&browser, script).await).unwrap();
    let [device, first, second] = &marks[..] else { panic!("{marks:?}") };
    assert!(marks.iter().all(|(is_in, ..)| *is_in), "{marks:?}");
    assert_eq!([&device.1, &first.1, &second.1], ["1", "2", "3"]);
    // Both gateways are north and east of the device, at the same longitude.
    assert!(device.2 < first.2 && (first.2 - second.2).abs() <= 1, "{marks:?}");
    for name in ["The device", "gateway-1", "<b>gateway-2"] {
        wait_for_text(&browser, "section[@id='map']//li", name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_and_the_device_are_on_a_map() {
    map("message-desk", Look { width: 1280, ..DESK }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_are_on_a_map_on_a_phone_in_the_dark_without_scripts() {
    map("message-phone", Look { width: 375, dark: true, scripts: false }).await;
}
