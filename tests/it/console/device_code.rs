//! The QR code of a device in front of a camera, in a real browser whose camera and decoder are stand-ins.

use serde_json::json;

use super::{
    browsing::{ask, logged_in},
    visitor,
};
use crate::{
    browser::{DESK, console::wait_for_text, driver::Look},
    harness::Network,
};

const CODE: &str = "LW:D0:1122334455667788:AABBCCDDEEFF0011:AABB1122";
/// A camera that shows an empty picture, and a decoder that finds the text `window.seen` in it.
const STAND_INS: &str = "
    window.BarcodeDetector = class {
        static async getSupportedFormats() { return ['qr_code']; }
        async detect(video) { return video.srcObject && window.seen ? [{ rawValue: window.seen }] : []; }
    };
    const canvas = document.createElement('canvas');
    canvas.getContext('2d');
    navigator.mediaDevices.getUserMedia = async () => (window.camera = canvas.captureStream());";
/// The picture is hidden, and the camera is off.
const IS_OFF: &str = "return document.querySelector('#scan video').hidden && !window.camera.active;";

// Conformance: console: the QR code of a device in front of the camera
#[tokio::test]
async fn a_code_in_front_of_the_camera_fills_its_field() {
    let network = Network::start().await;
    let (_alice, _visitor) = visitor(&network).await;
    let Some(browser) = logged_in(&network, "device-code", Look { width: 375, ..DESK }).await else { return };
    let path = "/console/applications/alice-app/new-device";
    browser.open(path).await;
    browser.wait_for("Register a device").await;
    assert_eq!(ask(&browser, "return document.getElementById('scan').hidden;").await, true, "it has no decoder");

    browser.tell("Page.addScriptToEvaluateOnNewDocument", json!({ "source": STAND_INS })).await;
    browser.open(path).await;
    wait_for_text(&browser, "div[@id=\"scan\" and not(@hidden)]", "Scan with the camera").await;
    browser.click("#scan button").await;
    wait_for_text(&browser, "span", "Hold the code in front").await;
    ask(&browser, &format!("window.seen = '{CODE}';")).await;
    wait_for_text(&browser, "span", "The code was read").await;
    assert_eq!(browser.value("#qr").await, CODE);
    assert_eq!(ask(&browser, IS_OFF).await, true);
    browser.look("device-code").await;

    ask(&browser, "window.seen = '';").await;
    browser.click("#scan button").await;
    wait_for_text(&browser, "span", "Hold the code in front").await;
    let hide = "Object.defineProperty(document, 'hidden', { value: true }); \
                document.dispatchEvent(new Event('visibilitychange'));";
    ask(&browser, hide).await;
    wait_for_text(&browser, "span", "The camera is off").await;
    assert_eq!(ask(&browser, IS_OFF).await, true, "nobody looks at the page");
    browser.click("#scan button").await;
    wait_for_text(&browser, "span", "Hold the code in front").await;
    ask(&browser, "window.camera.getTracks()[0].dispatchEvent(new Event('ended'));").await;
    wait_for_text(&browser, "span", "The camera has stopped").await;
    assert_eq!(ask(&browser, IS_OFF).await, true, "somebody has taken the camera away");
}
