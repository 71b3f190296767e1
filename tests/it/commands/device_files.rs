//! `airlock devices import` and `export`.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use super::CommandLine;
use crate::harness::{complaint, printed};

const APP_KEY: &str = "2B7E151628AED2A6ABF7158809CF4F3C";
const NWK_S_KEY: &str = "00112233445566778899AABBCCDDEEFF";
const APP_S_KEY: &str = "FFEEDDCCBBAA99887766554433221100";

impl CommandLine {
    fn write(&self, name: &str, text: &str) {
        fs::write(self.network.dir.path().join(name), text).unwrap();
    }

    /// A device as the handler has it.
    fn exported(&self, dev_id: &str) -> Value {
        let lines = self.typed(&["devices", "export", "--format", "json", "--with-keys"]);
        let devices = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        devices.into_iter().find(|device| device["dev_id"] == dev_id).unwrap_or_default()
    }

    /// Row, field and reason of each bad row.
    fn bad_rows(&self, arguments: &[&str]) -> Vec<[String; 3]> {
        let output = self.network.type_command(&[arguments, &["-o", "json"]].concat(), "");
        assert!(complaint(&output).contains("nothing was changed"), "{output:?}");
        assert_eq!(output.status.code(), Some(2));
        let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let cell = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        rows.iter().map(|row| [&row["row"], &row["field"], &row["reason"]].map(cell)).collect()
    }
}

// Conformance: devices import, export: CSV, JSON, The Things Stack, ChirpStack
#[tokio::test(flavor = "multi_thread")]
async fn an_export_can_be_imported_and_imported_again() {
    let line = CommandLine::start().await;
    line.typed(&["devices", "register", "dev-1", "0102030405060708", APP_KEY, "52.37,4.89,3"]);
    let description = "By the \"door\"; left, 2nd floor";
    line.typed(&["devices", "set", "dev-1", "--description", description, "--attr-set", "floor:2", "--fcnt-up", "7"]);
    line.typed(&["devices", "register", "on-join", "prefix", APP_KEY]);
    line.typed(&["devices", "register", "dev-2", "0102030405060709", APP_KEY]);
    line.typed(&["devices", "personalize", "dev-2", NWK_S_KEY, APP_S_KEY]);
    let before = ["dev-1", "dev-2", "prefix"].map(|dev_id| line.exported(dev_id));
    for (file, format) in [("devices.csv", "csv"), ("devices.json", "json")] {
        line.typed(&["devices", "export", file, "--format", format, "--with-keys"]);
        let file_path = line.network.dir.path().join(file);
        assert_eq!(fs::metadata(&file_path).unwrap().permissions().mode() & 0o777, 0o600);
        let import = |options: &[&str]| line.typed(&[&["devices", "import", file], options].concat());
        assert_eq!(import(&[]), "Devices: 0 created, 0 updated, 3 unchanged\n", "{format}");
        for dev_id in ["dev-1", "dev-2", "prefix"] {
            line.typed(&["devices", "delete", dev_id, "--yes"]);
        }
        let dry = import(&["--dry-run"]);
        let last = "Nothing was changed. Without --dry-run: 3 created, 0 updated, 0 unchanged\n";
        assert!(dry.ends_with(last) && dry.contains("dev-2"), "{dry}");
        assert!(line.typed(&["devices", "list"]).contains("no devices"));
        assert_eq!(import(&[]), "Devices: 3 created, 0 updated, 0 unchanged\n", "{format}");
        assert_eq!(["dev-1", "dev-2", "prefix"].map(|dev_id| line.exported(dev_id)), before, "{format}");
        assert_eq!(import(&[]), "Devices: 0 created, 0 updated, 3 unchanged\n", "{format}");
    }
    line.network.stack.stop().await;
}

// Conformance: devices import, export: CSV, JSON, The Things Stack, ChirpStack
#[tokio::test(flavor = "multi_thread")]
async fn spreadsheets_may_leave_rows_of_separators_and_write_utf_16() {
    let line = CommandLine::start().await;
    line.write("rows.csv", "dev_id;dev_eui;description\ndev-1;0102030405060708;a\n;;\n;\n");
    assert!(line.typed(&["devices", "import", "rows.csv"]).contains("1 created"));
    let utf_16 = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect()
    };
    let json = r#"{"dev_id": "dev-2", "dev_eui": "0102030405060709", "description": "Größe"}"#;
    let csv = "dev_id\tdev_eui\tdescription\r\ndev-3\t010203040506070A\tGröße\r\n";
    for (name, bytes) in [("le.json", utf_16(json, u16::to_le_bytes)), ("be.csv", utf_16(csv, u16::to_be_bytes))] {
        fs::write(line.network.dir.path().join(name), bytes).unwrap();
        assert!(line.typed(&["devices", "import", name]).contains("1 created"), "{name}");
    }
    assert_eq!(line.exported("dev-3")["description"], "Größe");
    let unmarked: Vec<u8> =
        csv.replace("dev-3", "dev-4").replace("0A", "0B").encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(line.network.dir.path().join("unmarked.csv"), unmarked).unwrap();
    assert!(line.typed(&["devices", "import", "unmarked.csv"]).contains("1 created"));
    assert_eq!(line.exported("dev-4")["description"], "Größe");
    // One without a byte of its last character.
    fs::write(line.network.dir.path().join("cut.csv"), b"\xff\xfed\0e").unwrap();
    let output = line.network.type_command(&["devices", "import", "cut.csv"], "");
    assert!(complaint(&output).contains("it begins as UTF-16, but is not"), "{output:?}");
    line.network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spreadsheets_may_name_the_separator_first() {
    let line = CommandLine::start().await;
    for (number, first) in ["sep=;", "sep=;;;;", "\"sep=;\"", "SEP=;\r"].into_iter().enumerate() {
        line.write("rows.csv", &format!("{first}\ndev_id;dev_eui\ndev-{number};010203040506070{number}\n"));
        assert!(line.typed(&["devices", "import", "rows.csv"]).contains("1 created"), "{first}");
    }
    line.write("rows.csv", "sep=;\ndev_id;dev_eui\ndev-9;01;02\n");
    let reason = "the row has 3 cells, and the first row 2";
    let bad = line.bad_rows(&["devices", "import", "rows.csv"]);
    assert_eq!((bad[0][0].as_str(), bad[0][2].as_str()), ("3", reason));
    line.network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_exported_only_on_request() {
    let line = CommandLine::start().await;
    line.typed(&["devices", "register", "dev-1", "0102030405060708", APP_KEY]);
    for format in ["csv", "json"] {
        assert!(!line.typed(&["devices", "export", "--format", format]).contains(APP_KEY), "{format}");
        assert!(line.typed(&["devices", "export", "--format", format, "--with-keys"]).contains(APP_KEY), "{format}");
    }
    assert!(line.typed(&["devices", "export", "-"]).contains("dev-1") && !line.network.dir.path().join("-").exists());
    // What a file does not say stays.
    line.typed(&["devices", "export", "devices.csv"]);
    assert!(line.typed(&["devices", "import", "devices.csv"]).contains("1 unchanged"));
    line.write("part.csv", "dev_id,description\ndev-1,new\n");
    assert!(line.typed(&["devices", "import", "part.csv"]).contains("1 updated"));
    let device = line.exported("dev-1");
    assert_eq!((&device["description"], &device["lorawan_device"]["app_key"]), (&json!("new"), &json!(APP_KEY)));
    line.network.stack.stop().await;
}

// Conformance: devices import, export: CSV, JSON, The Things Stack, ChirpStack
#[tokio::test(flavor = "multi_thread")]
async fn devices_of_the_things_stack_are_imported() {
    let line = CommandLine::start().await;
    let exported = json!({
        "ids": {
            "device_id": "tts-1",
            "application_ids": { "application_id": "other" },
            "dev_eui": "A84041F0A1B2C3D4",
            "join_eui": "A000000000000101",
        },
        "created_at": "2024-05-01T12:00:00Z",
        "name": "Roof",
        "attributes": { "floor": "5" },
        "locations": { "user": { "latitude": 51.5, "longitude": -0.1, "altitude": 20, "source": "SOURCE_REGISTRY" } },
        "lorawan_version": "MAC_V1_0_3",
        "supports_join": true,
        "root_keys": { "app_key": { "key": APP_KEY } },
        "mac_settings": { "supports_32_bit_f_cnt": true, "resets_f_cnt": true },
        "session": {
            "dev_addr": "260B1234",
            "keys": { "f_nwk_s_int_key": { "key": NWK_S_KEY }, "app_s_key": { "key": APP_S_KEY } },
            "last_f_cnt_up": 41,
            "last_n_f_cnt_down": 9,
        },
    });
    // The console writes a stream of indented objects.
    line.write("end_devices.json", &format!("{exported:#}\n"));
    assert!(line.typed(&["devices", "import", "end_devices.json"]).contains("1 created"));
    let device = line.exported("tts-1");
    let lorawan = &device["lorawan_device"];
    for (name, expected) in [
        ("dev_eui", json!("A84041F0A1B2C3D4")),
        ("app_eui", json!("A000000000000101")),
        ("dev_addr", json!("260B1234")),
        ("app_key", json!(APP_KEY)),
        ("nwk_s_key", json!(NWK_S_KEY)),
        ("app_s_key", json!(APP_S_KEY)),
        ("f_cnt_up", json!(41)),
        ("f_cnt_down", json!(9)),
        ("disable_f_cnt_check", json!(true)),
        ("uses32_bit_f_cnt", json!(true)),
    ] {
        assert_eq!(lorawan[name], expected, "{name}");
    }
    assert_eq!((&device["description"], &device["attributes"]), (&json!("Roof"), &json!({ "floor": "5" })));
    assert_eq!((&device["latitude"], &device["altitude"]), (&json!(51.5), &json!(20)));

    let csv = format!(
        "\u{feff}id;dev_eui;join_eui;name;frequency_plan_id;lorawan_version;app_key;nwk_key\n\
         tts-2;A84041F0A1B2C3D5;A000000000000101;\"Roof; right\";EU_863_870_TTN;MAC_V1_0_3;{APP_KEY};\n\
         ;A84041F0A1B2C3D6;A000000000000101;;EU_863_870_TTN;MAC_V1_0_3;{APP_KEY};\n"
    );
    line.write("end_devices.csv", &csv);
    assert!(line.typed(&["devices", "import", "end_devices.csv"]).contains("2 created"));
    assert_eq!(line.exported("tts-2")["description"], "Roof; right");
    assert_eq!(line.exported("eui-a84041f0a1b2c3d6")["lorawan_device"]["app_key"], APP_KEY);

    let newer = exported.to_string().replace("MAC_V1_0_3", "MAC_V1_1").replace("tts-1", "tts-3");
    line.write("newer.json", &newer);
    let bad = line.bad_rows(&["devices", "import", "newer.json"]);
    assert_eq!((bad[0][0].as_str(), bad[0][1].as_str()), ("1", "lorawan_version"));
    line.network.stack.stop().await;
}

// Conformance: devices import, export: CSV, JSON, The Things Stack, ChirpStack
#[tokio::test(flavor = "multi_thread")]
async fn devices_of_chirpstack_are_imported() {
    let line = CommandLine::start().await;
    let zeros = "0".repeat(32);
    let csv = format!(
        "Name,DevEUI,Join EUI,device_profile_id,app_key,nwk_key,tags,skip_fcnt_check\n\
         Cellar,a84041f0a1b2c3d4,a000000000000101,5f1a,{zeros},{APP_KEY},\"{{\"\"floor\"\":\"\"-1\"\"}}\",true\n"
    );
    line.write("chirpstack.csv", &csv);
    assert!(line.typed(&["devices", "import", "chirpstack.csv"]).contains("1 created"));
    let device = line.exported("eui-a84041f0a1b2c3d4");
    let lorawan = &device["lorawan_device"];
    // The AppKey of LoRaWAN 1.0 is in `nwk_key` there.
    assert_eq!((&lorawan["app_key"], &lorawan["app_eui"]), (&json!(APP_KEY), &json!("A000000000000101")));
    assert_eq!((&device["description"], &device["attributes"]), (&json!("Cellar"), &json!({ "floor": "-1" })));
    assert_eq!(lorawan["disable_f_cnt_check"], true);

    // A device that was registered under another id is found by its DevEUI.
    line.typed(&["devices", "register", "attic", "A84041F0A1B2C3D7", APP_KEY, "--app-eui", &line.app_eui()]);
    line.write("more.csv", "name,dev_eui\nAttic,a84041f0a1b2c3d7\n");
    assert!(line.typed(&["devices", "import", "more.csv"]).contains("1 updated"));
    assert_eq!(line.exported("attic")["description"], "Attic");
    line.network.stack.stop().await;
}

// Conformance: devices import, export: CSV, JSON, The Things Stack, ChirpStack
#[tokio::test(flavor = "multi_thread")]
async fn bad_rows_are_reported_together_and_nothing_is_written() {
    let line = CommandLine::start().await;
    line.typed(&["devices", "register", "dev-1", "0102030405060708", APP_KEY]);
    let app_eui = line.app_eui();
    let csv = format!(
        "dev_id,dev_eui,app_key,latitude,f_cnt_up,attributes,app_eui\n\
         good,0102030405060701,,,,,\n\
         not an id,0102030405060702,,,,,\n\
         short-key,0102030405060703,1234,,,,\n\
         far,0102030405060704,,100,,,\n\
         negative,0102030405060705,,,-1,,\n\
         many,0102030405060706,,,,\"{{\"\"a\"\":\"\"1\"\",\"\"b\"\":\"\"1\"\",\"\"c\"\":\"\"1\"\",\"\"d\"\":\"\"1\"\",\"\"e\"\":\"\"1\"\",\"\"f\"\":\"\"1\"\"}}\",\n\
         good,0102030405060707,,,,,\n\
         cells,0102030405060709\n\
         ,,,,,,\n\
         dev-1,0102030405060710,,,,,\n\
         other,0102030405060708,,,,,{app_eui}\n"
    );
    line.write("bad.csv", &csv);
    let bad = line.bad_rows(&["devices", "import", "bad.csv"]);
    let reasons = [
        ("3", "dev_id", ""),
        ("4", "app_key", "32 hexadecimal digits"),
        ("5", "latitude", "from -90 to 90"),
        ("6", "f_cnt_up", "a number from 0"),
        ("7", "", "at most 5"),
        ("8", "dev_id", "row 2"),
        ("9", "", "2 cells"),
        ("10", "dev_id", "is missing"),
        ("11", "dev_eui", "--override"),
        ("12", "dev_eui", "the device dev-1"),
    ];
    for (row, (number, field, reason)) in bad.iter().zip(reasons) {
        assert_eq!((row[0].as_str(), row[1].as_str()), (number, field), "{row:?}");
        assert!(row[2].contains(reason) && !row[2].contains("1234"), "{row:?}");
    }
    assert_eq!(bad.len(), reasons.len(), "{bad:?}");
    assert_eq!(line.typed(&["devices", "list", "-q"]), "dev-1\n");

    for (file, text, reason) in [
        ("empty.csv", "", "must name the columns"),
        ("other.csv", "a,b\n1,2\n", "must name the columns"),
        ("cut.json", "{\"dev_id\":", "not valid JSON"),
    ] {
        line.write(file, text);
        let (_, error) = line.refused(&["devices", "import", file], "");
        assert!(error.contains(reason) && error.contains(file), "{error}");
    }
    let output = line
        .network
        .type_command(&["devices", "import", "-", "--override"], "dev_id,dev_eui\ndev-1,0102030405060710\n");
    assert!(printed(&output).contains("1 updated"));
    assert_eq!(line.exported("dev-1")["lorawan_device"]["dev_eui"], "0102030405060710");
    line.network.stack.stop().await;
}

// Conformance: devices import, export: CSV, JSON, The Things Stack, ChirpStack
#[tokio::test(flavor = "multi_thread")]
async fn rows_whose_euis_another_application_has_do_not_stop_the_others() {
    let line = CommandLine::start().await;
    line.typed(&["devices", "register", "dev-1", "0102030405060708", APP_KEY]);
    let app_eui = line.app_eui();
    line.typed(&["applications", "add", "other", "Other"]);
    line.typed(&["applications", "register"]);
    let rows: String = (1..=20).map(|number| format!("new-{number:02},00000000000000{number:02},\n")).collect();
    line.write("rows.csv", &format!("dev_id,dev_eui,app_eui\nfirst,0102030405060708,{app_eui}\n{rows}"));
    let output = line.network.type_command(&["devices", "import", "rows.csv", "--dry-run"], "");
    let (shown, said) = (String::from_utf8_lossy(&output.stdout), complaint(&output));
    assert!(
        said.contains("1 row would be refused; without --dry-run, all others are imported")
            && shown.contains("Without --dry-run: 20 created"),
        "{output:?}"
    );
    assert!(shown.contains("device dev-1 of application my-app has the same EUIs: move it from there"), "{shown}");
    assert_eq!(line.typed(&["devices", "list", "-q"]), "");
    for counts in ["20 created, 0 updated, 0 unchanged", "0 created, 0 updated, 20 unchanged"] {
        let output = line.network.type_command(&["devices", "import", "rows.csv", "-o", "json"], "");
        let said = complaint(&output);
        assert!(said.contains(counts) && said.contains("1 row cannot be used; all others are imported"), "{said}");
        assert_eq!(output.status.code(), Some(2));
        let refused: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&refused[0]["row"], &refused[0]["field"]), (&json!(2), &json!("dev_eui")), "{refused}");
        assert!(refused[0]["reason"].as_str().unwrap().contains("move it from there"), "{refused}");
        assert_eq!(
            (refused.as_array().unwrap().len(), line.typed(&["devices", "list", "-q"]).lines().count()),
            (1, 20)
        );
    }
    line.network.stack.stop().await;
}

impl CommandLine {
    fn app_eui(&self) -> String {
        let info: Value = serde_json::from_str(&self.typed(&["applications", "info", "-o", "json"])).unwrap();
        info["euis"][0].as_str().expect("it has an EUI").to_owned()
    }
}
