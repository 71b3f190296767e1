//! Devices in the console: registered, changed, deleted.

mod imports;
mod many;
mod moved;
mod silence;
mod table;
mod uplinks;

use std::time::Duration;

use api::rest::handler::{Device, LorawanDevice};
use types::DevEui;

use super::{
    visitor,
    visitor::{Page, Visitor},
};
use crate::harness::{Network, Owner};

const APPLICATION: &str = "/console/applications/alice-app";
const NEW: &str = "/console/applications/alice-app/new-device";
const CHANGE: &str = "/console/applications/alice-app/devices/dev-1/change";
const KEY: &str = "000102030405060708090A0B0C0D0E0F";
const OTHER_KEY: &str = "0F0E0D0C0B0A09080706050403020100";
const CODE: &str = "LW:D0:1122334455667788:AABBCCDDEEFF0011:AABB1122";

async fn stored(alice: &Owner, dev_id: &str) -> (Device, LorawanDevice) {
    let device = alice.handler.get_device(&alice.app_id, &dev_id.parse().unwrap()).await.unwrap();
    let mut device = Device::try_from(device).unwrap();
    let lorawan = device.lorawan_device.take().unwrap();
    (device, lorawan)
}

/// The form of a change as it was opened, except for some fields.
fn form<'a>(opened: &'a Opened, typed: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut fields = typed.to_vec();
    for (name, text) in &opened.0 {
        if !typed.iter().any(|(typed, _)| typed == name) {
            fields.push((name, text));
        }
    }
    fields
}

/// The fields that a browser would send from a page if nothing was typed.
struct Opened(Vec<(&'static str, String)>);

impl Opened {
    async fn get(visitor: &Visitor) -> Self {
        Self::of(&visitor.get(CHANGE).await)
    }

    fn of(page: &Page) -> Self {
        let names = ["base", "description", "app_eui", "dev_eui", "dev_addr", "latitude", "longitude", "altitude"];
        let mut fields: Vec<_> = names.map(|name| (name, page.value(name))).into();
        fields.push(("attributes", page.typed("attributes")));
        for (id, name, value) in [
            ("uses_32_bit_f_cnt", "uses_32_bit_f_cnt", "yes"),
            ("disable_f_cnt_check", "disable_f_cnt_check", "yes"),
            ("activation-otaa", "activation", "otaa"),
            ("activation-abp", "activation", "abp"),
        ] {
            if page.html.contains(&format!("id=\"{id}\" name=\"{name}\" value=\"{value}\" checked")) {
                fields.push((name, value.to_owned()));
            }
        }
        Self(fields)
    }
}

// Conformance: console: devices registered, changed, deleted; nothing typed is lost
#[tokio::test]
async fn a_key_that_nobody_types_is_generated_and_shown_once() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    assert_eq!(visitor.get(APPLICATION).await.link("Register a device"), NEW);
    assert!(visitor.get(NEW).await.html.contains("Also known as JoinEUI"));
    let fields = [
        ("dev_id", "sensor-1"),
        ("description", "By the <b>door</b>"),
        ("activation", "otaa"),
        ("uses_32_bit_f_cnt", "yes"),
        ("latitude", "-52.5"),
        ("attributes", "floor: 3\r\nroom: a:1"),
    ];
    let page = visitor.post(NEW, &fields).await;
    let (device, lorawan) = stored(&alice, "sensor-1").await;
    let key = lorawan.app_key.unwrap().to_hex();
    assert!(page.html.contains("is registered") && page.html.contains(&key), "{}", page.html);
    assert!(page.html.contains(&lorawan.dev_eui.to_hex()), "{}", page.html);
    assert_eq!((device.description.as_str(), device.latitude), ("By the <b>door</b>", -52.5));
    assert_eq!(device.attributes["room"], "a:1");
    assert!(lorawan.uses32_bit_f_cnt && !lorawan.disable_f_cnt_check && !lorawan.app_eui.is_zero());

    for path in ["sensor-1", "sensor-1/change"] {
        let page = visitor.get(&format!("{APPLICATION}/devices/{path}")).await;
        assert!(page.status == 200 && !page.html.contains(&key), "{}", page.html);
        assert!(page.html.contains("door") && !page.html.contains("<b>door"), "{}", page.html);
    }
}

// Conformance: console: devices registered, changed, deleted; nothing typed is lost
#[tokio::test]
async fn a_code_has_the_euis_and_typed_keys_are_in_no_page() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let spaced = "00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f";
    let fields = [("dev_id", "sensor-1"), ("qr", CODE), ("activation", "otaa"), ("app_key", spaced)];
    let page = visitor.post(NEW, &fields).await;
    assert!(page.path.ends_with("/devices/sensor-1"), "{}: {}", page.path, page.html);
    assert!(page.html.contains("Device registered.") && !page.html.contains(KEY), "{}", page.html);
    let (_, lorawan) = stored(&alice, "sensor-1").await;
    assert_eq!(lorawan.app_key.unwrap().to_hex(), KEY);
    let euis = (lorawan.app_eui.to_hex(), lorawan.dev_eui.to_hex());
    assert_eq!(euis, ("1122334455667788".to_owned(), "AABBCCDDEEFF0011".to_owned()));

    let fields = [("dev_id", "sensor-2"), ("qr", CODE), ("activation", "otaa"), ("app_key", KEY)];
    let page = visitor.post(NEW, &fields).await;
    assert!(page.status == 409 && page.html.contains("already exists"), "{}: {}", page.status, page.html);
    assert!(page.html.contains("id=\"dev_eui-wrong\""), "{}", page.html);
    assert!(page.value("qr") == CODE && page.value("dev_eui") == "AABBCCDDEEFF0011", "{}", page.html);
    assert!(page.html.contains("Enter your keys again") && !page.html.contains(KEY), "{}", page.html);
}

// Conformance: console: devices registered, changed, deleted; nothing typed is lost
#[tokio::test]
async fn a_form_that_is_sent_again_shows_what_it_generated_and_no_other_form_does() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let draw = visitor.get(NEW).await.value("draw");
    let fields = [("dev_id", "sensor-1"), ("activation", "abp"), ("draw", &draw)];
    let first = visitor.post(NEW, &fields).await;
    let (_, lorawan) = stored(&alice, "sensor-1").await;
    let values = [lorawan.app_s_key.unwrap().to_hex(), lorawan.dev_eui.to_hex(), lorawan.dev_addr.unwrap().to_hex()];
    // As a browser sends it whose connection was lost.
    let again = visitor.post(NEW, &fields).await;
    for value in &values {
        assert!(first.html.contains(value) && again.html.contains(value), "{value}: {}", again.html);
        assert!(!draw.contains(value) && !again.path.contains(value), "{value}: {}", again.path);
    }
    assert!(again.status == 200 && again.html.contains("You sent this form before"), "{}", again.html);
    assert_eq!(values[0], stored(&alice, "sensor-1").await.1.app_s_key.unwrap().to_hex());

    let other = [("dev_id", "sensor-2"), ("activation", "abp"), ("draw", &draw)];
    visitor.post(NEW, &other).await;
    assert_ne!(values[0], stored(&alice, "sensor-2").await.1.app_s_key.unwrap().to_hex());
    for draw in ["", "0-0", &visitor.get(NEW).await.value("draw")] {
        let page = visitor.post(NEW, &[("dev_id", "sensor-1"), ("activation", "abp"), ("draw", draw)]).await;
        assert!(page.status == 409 && !page.html.contains(&values[0]), "{}: {}", page.status, page.html);
    }

    let change = format!("{APPLICATION}/devices/sensor-1/change");
    let opened = visitor.get(&change).await;
    let (mut fields, draw) = (Opened::of(&opened), opened.value("draw"));
    fields.0.retain(|(name, _)| *name != "activation");
    let fields = form(&fields, &[("activation", "otaa"), ("draw", &draw)]);
    visitor.post(&change, &fields).await;
    let key = stored(&alice, "sensor-1").await.1.app_key.unwrap().to_hex();
    let again = visitor.post(&change, &fields).await;
    assert!(again.html.contains(&key) && again.html.contains("You sent this form before"), "{}", again.html);
}

// Conformance: console: devices registered, changed, deleted; nothing typed is lost
#[tokio::test]
async fn a_form_does_not_bring_back_a_device_that_was_deleted() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let draw = visitor.get(NEW).await.value("draw");
    let form = [("dev_id", "sensor-1"), ("description", "By the door"), ("activation", "otaa")];
    let fields = [&form[..], &[("draw", draw.as_str())]].concat();
    visitor.post(NEW, &fields).await;
    let key = stored(&alice, "sensor-1").await.1.app_key.unwrap().to_hex();
    let dev_id = "sensor-1".parse().unwrap();
    alice.handler.delete_device(&alice.app_id, &dev_id).await.unwrap();
    // As a browser sends it that loads the page with the keys again, and then the page that refuses.
    visitor.post(NEW, &fields).await;
    let page = visitor.post(NEW, &fields).await;
    assert!(page.status == 409 && page.html.contains("and deleted since"), "{}: {}", page.status, page.html);
    assert!(page.value("description") == "By the door" && !page.html.contains(&key), "{}", page.html);
    assert!(alice.handler.get_device(&alice.app_id, &dev_id).await.is_err(), "it stays deleted");

    let draw = page.value("draw");
    visitor.post(NEW, &[&form[..], &[("draw", draw.as_str())]].concat()).await;
    let (device, lorawan) = stored(&alice, "sensor-1").await;
    assert_eq!(device.description, "By the door");
    assert_ne!(lorawan.app_key.unwrap().to_hex(), key, "whoever sends the form of that page gets new keys");
}

// Conformance: console: devices registered, changed, deleted; nothing typed is lost
#[tokio::test]
async fn a_device_that_does_not_join_has_a_session() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let fields = [("dev_id", "sensor-1"), ("activation", "abp"), ("nwk_s_key", KEY), ("f_cnt_up", "7")];
    let page = visitor.post(NEW, &fields).await;
    let (_, lorawan) = stored(&alice, "sensor-1").await;
    let app_s_key = lorawan.app_s_key.unwrap().to_hex();
    let dev_addr = lorawan.dev_addr.unwrap().to_hex();
    assert!(page.html.contains(&app_s_key) && page.html.contains(&dev_addr), "{}", page.html);
    assert!(!page.html.contains(KEY) && lorawan.nwk_s_key.unwrap().to_hex() == KEY, "{}", page.html);
    assert_eq!((lorawan.f_cnt_up, lorawan.app_key.unwrap_or_default().is_zero()), (7, true));
}

// Conformance: console: devices registered, changed, deleted; nothing typed is lost
#[tokio::test]
async fn a_device_that_is_not_valid_is_refused_and_what_was_typed_stays() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let (long, many) = (format!("{}: 1", "k".repeat(65)), "d".repeat(5000));
    for (name, typed, status, expected) in [
        ("dev_id", "<script>", 400, "Device id not valid"),
        ("dev_id", "dev-1", 409, "device dev-1 already exists"),
        ("qr", "LW:D0:<b>", 400, "QR code not valid"),
        ("dev_eui", "<b>", 400, "DevEUI not valid: must be 16 hexadecimal digits"),
        ("dev_eui", "00-00-00-00-00-00-00-00", 400, "DevEUI not valid: must not be all zeros"),
        ("app_key", "01", 400, "AppKey not valid: must be 32 hexadecimal digits"),
        ("activation", "<b>", 400, "Activation not valid"),
        ("f_cnt_up", "-1", 400, "Uplink counter not valid"),
        ("latitude", "91", 400, "Latitude not valid"),
        ("altitude", "1.5", 400, "Altitude not valid"),
        ("attributes", "</textarea><b>", 400, "Attributes not valid"),
        ("attributes", &long, 400, "Attributes not valid"),
        ("description", &many, 400, "Description not valid"),
    ] {
        let mut fields = vec![("dev_id", "sensor-1"), ("description", "typed & <i>kept</i>"), ("activation", "otaa")];
        fields.retain(|(known, _)| *known != name);
        fields.push((name, typed));
        let page = visitor.post(NEW, &fields).await;
        assert_eq!(page.status, status, "{name}: {}", page.html);
        let text = page.html.to_lowercase();
        assert!(text.contains(&expected.to_lowercase()), "{expected}: {}", page.html);
        let description = if name == "description" { typed } else { "typed & <i>kept</i>" };
        assert_eq!(page.value("description"), description);
        for markup in ["<b>", "<script>", "<i>"] {
            assert!(!page.html.contains(markup), "{}", page.html);
        }
        let (at, link) = (format!("id=\"{name}-wrong\""), format!("href=\"#{name}\""));
        assert!(page.html.contains(&at) && page.html.contains(&link), "{name}: {}", page.html);
    }
    assert!(alice.handler.get_device(&alice.app_id, &"sensor-1".parse().unwrap()).await.is_err());
}

// Conformance: console: devices registered, changed, deleted; nothing typed is lost
#[tokio::test]
async fn what_is_left_as_it_was_stays_and_keys_are_replaced_only_by_others() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let opened = Opened::get(&visitor).await;
    let page =
        visitor.post(CHANGE, &form(&opened, &[("app_key", KEY), ("attributes", "a: 1"), ("f_cnt_up", "9")])).await;
    assert!(page.html.contains("Changes saved."), "{}: {}", page.path, page.html);
    let opened = Opened::get(&visitor).await;
    visitor.post(CHANGE, &form(&opened, &[("description", "<u>new</u>")])).await;
    let (device, lorawan) = stored(&alice, "dev-1").await;
    assert_eq!((device.description.as_str(), device.attributes["a"].as_str()), ("<u>new</u>", "1"));
    assert_eq!((lorawan.app_key.unwrap().to_hex().as_str(), lorawan.f_cnt_up), (KEY, 9));

    let opened = Opened::get(&visitor).await;
    let page = visitor.post(CHANGE, &form(&opened, &[("activation", "abp")])).await;
    let (_, session) = stored(&alice, "dev-1").await;
    let nwk_s_key = session.nwk_s_key.unwrap().to_hex();
    assert!(page.html.contains("is changed") && page.html.contains(&nwk_s_key), "{}", page.html);
    assert!(session.app_key.unwrap_or_default().is_zero() && session.f_cnt_up == 0);
    let page = visitor.get(CHANGE).await;
    assert!(page.html.contains("New ABP session") && !page.html.contains(&nwk_s_key), "{}", page.html);
    visitor.post(CHANGE, &form(&Opened::of(&page), &[("latitude", "1")])).await;
    let (_, kept) = stored(&alice, "dev-1").await;
    assert_eq!((kept.nwk_s_key.unwrap().to_hex(), kept.dev_addr), (nwk_s_key.clone(), session.dev_addr));
    let opened = Opened::get(&visitor).await;
    visitor.post(CHANGE, &form(&opened, &[("activation", "personalize")])).await;
    assert_ne!(stored(&alice, "dev-1").await.1.nwk_s_key.unwrap().to_hex(), nwk_s_key);
}

// Conformance: console: devices registered, changed, deleted; nothing typed is lost
#[tokio::test]
async fn a_device_that_has_counted_up_since_the_form_was_opened_is_not_set_back() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let page = visitor.get(CHANGE).await;
    assert_eq!(["f_cnt_up", "f_cnt_down"].map(|name| page.value(name)), ["", ""], "the form has no counters");
    let (device, lorawan) = stored(&alice, "dev-1").await;
    let lorawan = LorawanDevice { f_cnt_up: 500, f_cnt_down: 7, ..lorawan };
    let counted = Device { lorawan_device: Some(lorawan), ..device };
    alice.handler.set_device(counted.into()).await.unwrap();
    let typed = [("description", "mine"), ("f_cnt_up", ""), ("f_cnt_down", "")];
    let page = visitor.post(CHANGE, &form(&Opened::of(&page), &typed)).await;
    assert!(page.html.contains("Changes saved."), "{}", page.html);
    let (device, lorawan) = stored(&alice, "dev-1").await;
    assert_eq!((device.description.as_str(), lorawan.f_cnt_up, lorawan.f_cnt_down), ("mine", 500, 7));
}

// Conformance: console: devices registered, changed, deleted; nothing typed is lost
#[tokio::test]
async fn nothing_is_lost_when_somebody_else_changes_the_device_in_between() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let opened = Opened::get(&visitor).await;
    let (device, lorawan) = stored(&alice, "dev-1").await;
    let description = "<b>theirs</b>".to_owned();
    let lorawan = LorawanDevice { app_key: Some(OTHER_KEY.parse().unwrap()), ..lorawan };
    let theirs = Device { description, altitude: 12, lorawan_device: Some(lorawan), ..device };
    alice.handler.set_device(theirs.into()).await.unwrap();

    let mine = [("description", "mine"), ("longitude", "4.5"), ("app_key", KEY)];
    let page = visitor.post(CHANGE, &form(&opened, &mine)).await;
    assert_eq!(page.status, 409, "{}", page.html);
    for text in ["Someone else has", "&#60;b&#62;theirs", ">mine<", ">Altitude<", ">Keys<", "Enter your keys again"] {
        assert!(page.html.contains(text), "{text}: {}", page.html);
    }
    assert!(!page.html.contains(OTHER_KEY) && !page.html.contains(KEY), "{}", page.html);
    let typed = ["description", "longitude", "altitude"].map(|name| page.value(name));
    assert_eq!(typed, ["mine", "4.5", "12"].map(str::to_owned), "what was not typed is what it is now");
    let (device, lorawan) = stored(&alice, "dev-1").await;
    assert_eq!((device.description.as_str(), lorawan.app_key.unwrap().to_hex().as_str()), ("<b>theirs</b>", OTHER_KEY));

    let page = visitor.post(CHANGE, &form(&Opened::of(&page), &[])).await;
    assert!(page.html.contains("Changes saved."), "{}", page.html);
    let (device, _) = stored(&alice, "dev-1").await;
    assert_eq!((device.description.as_str(), device.longitude, device.altitude), ("mine", 4.5, 12));

    let without = visitor.post(CHANGE, &[("description", "unseen"), ("activation", "otaa")]).await;
    assert_eq!(without.status, 409, "nothing is replaced by a form that does not say what it began with");
}

// Conformance: console: devices registered, changed, deleted; nothing typed is lost
#[tokio::test]
async fn what_was_typed_about_a_device_comes_back_after_the_login_without_keys() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let (_alice, visitor) = visitor(&network).await;
    let opened = Opened::get(&visitor).await;
    // Longer than a token is valid, and shorter than a session of the account site.
    let expires = Duration::from_secs(2 * 3600);
    clock.advance(expires);
    let page = visitor.post(CHANGE, &form(&opened, &[("description", "slowly"), ("app_key", KEY)])).await;
    assert!(
        page.path.starts_with("/console/drafts/") && page.html.contains("may not have been saved"),
        "{}",
        page.html
    );
    assert!(page.value("description") == "slowly" && !page.html.contains(KEY), "{}", page.html);
    let page = visitor.post(CHANGE, &form(&Opened::of(&page), &[("app_key", KEY)])).await;
    assert!(page.html.contains("Changes saved.") && page.html.contains("slowly"), "{}", page.html);

    let draw = visitor.get(NEW).await.value("draw");
    clock.advance(expires);
    let fields = [("dev_id", "sensor-1"), ("activation", "abp"), ("nwk_s_key", KEY), ("attributes", "a: 1\nb: 2")];
    let page = visitor.post(NEW, &[&fields[..], &[("draw", &draw)]].concat()).await;
    assert_eq!(page.value("draw"), draw);
    assert!(
        page.path.starts_with("/console/drafts/") && page.html.contains("may not have been registered"),
        "{}",
        page.html
    );
    assert!(page.value("dev_id") == "sensor-1" && page.typed("attributes") == "a: 1\nb: 2", "{}", page.html);
    assert!(!page.html.contains(KEY) && page.html.contains("value=\"abp\" checked"), "{}", page.html);
}

// Conformance: console: devices registered, changed, deleted; nothing typed is lost
#[tokio::test]
async fn a_device_is_deleted_after_asking() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let path = format!("{APPLICATION}/devices/dev-1/delete");
    let page = visitor.get(&path).await;
    assert!(page.html.contains("Delete device dev-1?"), "{}", page.html);
    stored(&alice, "dev-1").await;
    let page = visitor.post(&path, &[]).await;
    assert!(page.html.contains("1 device deleted"), "{}", page.html);
    assert!(visitor.get(APPLICATION).await.html.contains("has no devices"));
    for gone in [path.as_str(), CHANGE] {
        assert_eq!(visitor.get(gone).await.status, 404);
        assert_eq!(visitor.post(gone, &[]).await.status, 404);
    }
}

// Conformance: console: devices registered, changed, deleted; nothing typed is lost
#[tokio::test]
async fn nobody_else_registers_changes_or_deletes_a_device() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    let opened = Opened::get(&visitor).await;
    let new = vec![("dev_id", "sensor-1"), ("activation", "otaa")];
    let changed = form(&opened, &[("description", "theirs")]);
    let delete = format!("{APPLICATION}/devices/dev-1/delete");
    for (path, fields) in [(NEW, &new), (CHANGE, &changed), (delete.as_str(), &Vec::new())] {
        let page = visitor.post_from(Some("https://evil.example"), path, fields).await;
        assert_eq!(page.status, 403, "{}", page.html);
    }
    network.owner("bobby").await;
    let bobby = Visitor::logged_in(&network.stack.settings().client.auth_server, "bobby").await;
    bobby.get("/console").await;
    for (path, fields) in [(NEW, &new), (CHANGE, &changed), (delete.as_str(), &Vec::new())] {
        assert_eq!(bobby.get(path).await.status, 404);
        assert_eq!(bobby.post(path, fields).await.status, 404);
    }
    let (device, lorawan) = stored(&alice, "dev-1").await;
    assert!(device.description.is_empty() && lorawan.dev_eui == DevEui::default());
    assert!(alice.handler.get_device(&alice.app_id, &"sensor-1".parse().unwrap()).await.is_err());
}
