//! Frequency plans: the list, and a packet forwarder's configuration for each.

use serde_json::{Value, json};

use crate::service::{Service, send};

#[tokio::test]
async fn anybody_can_list_plans_and_fetch_their_configurations() {
    let service = Service::start().await;
    let listed = service.get("/api/v2/frequency-plans", "").await.json();
    let ids: Vec<_> = listed.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "AS_920_923",
        "AS_923",
        "AS_923_925",
        "AU_915_928",
        "CN_470_510",
        "CN_779_787",
        "EU_433",
        "EU_863_870",
        "IN_865_867",
        "KR_920_923",
        "RU_864_870",
        "US_902_928",
    ];
    assert_eq!(ids, expected);
    for (id, plan) in listed.as_object().unwrap() {
        assert_eq!(plan["id"], json!(id));
        assert!(plan["base_freq"].is_u64() && !plan["name"].as_str().unwrap().is_empty(), "{plan}");
        let path = plan["url"].as_str().unwrap().strip_prefix(&service.base).unwrap();
        let chip = service.get(path, "").await.json()["SX1301_conf"].clone();
        assert_eq!(chip["lorawan_public"], true, "{id}");
        let channels = (0..8).filter(|channel| chip[format!("chan_multiSF_{channel}")]["enable"] == true).count();
        assert!(channels >= 2, "{id}");
    }
    assert_eq!(service.get("/api/v2/frequency-plans/EU_1", "").await.error().0, 404);
}

#[tokio::test]
async fn the_european_plan_matches_the_regional_parameters() {
    let service = Service::start().await;
    let chip = service.get("/api/v2/frequency-plans/EU_863_870", "").await.json()["SX1301_conf"].clone();
    let freq = |channel: &Value| {
        let radio = chip[format!("radio_{}", channel["radio"])]["freq"].as_i64().unwrap();
        radio + channel["if"].as_i64().unwrap()
    };
    let mut channels: Vec<_> = (0..8).map(|channel| freq(&chip[format!("chan_multiSF_{channel}")]) / 1000).collect();
    channels.sort_unstable();
    assert_eq!(channels, [867_100, 867_300, 867_500, 867_700, 867_900, 868_100, 868_300, 868_500]);
    let fast = &chip["chan_Lora_std"];
    assert_eq!((freq(fast), &fast["bandwidth"], &fast["spread_factor"]), (868_300_000, &json!(250_000), &json!(7)));
    let fsk = &chip["chan_FSK"];
    assert_eq!((freq(fsk), &fsk["datarate"]), (868_800_000, &json!(50_000)));
    assert_eq!(chip["tx_lut_15"], json!({"pa_gain": 3, "mix_gain": 14, "rf_power": 27, "dig_gain": 0}));
    let radio = &chip["radio_0"];
    assert_eq!((&radio["tx_freq_min"], &radio["tx_freq_max"]), (&json!(863_000_000), &json!(870_000_000)));
    assert_eq!(chip["radio_1"]["tx_enable"], false);
}

#[tokio::test]
async fn the_gateway_firmware_gets_no_gains() {
    let service = Service::start().await;
    let request = service.request("GET", "/api/v2/frequency-plans/US_902_928", "").header("user-agent", "TTNGateway");
    let chip = send(request).await.json()["SX1301_conf"].clone();
    assert!(chip["chan_Lora_std"]["bandwidth"] == 500_000 && chip["chan_FSK"] == json!({"enable": false}));
    assert!(chip.as_object().unwrap().keys().all(|name| !name.starts_with("tx_lut")), "{chip}");
}
