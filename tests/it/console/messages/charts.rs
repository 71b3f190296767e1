//! Charts in the console: pictures, tables and files.

use std::fs;

use crate::{
    console::{Visitor, visitor},
    harness::{Network, Owner},
};

const APPLICATION: &str = "/console/applications/alice-app";
const PATH: &str = "/console/applications/alice-app/devices/dev-1/charts";
const SEVERAL: &str = "/console/applications/alice-app/charts";
const DECODER: &str = "function Decoder(bytes) {
  return { celsius: bytes[0], '<script>\"=1': bytes[0] / 3 };
}";

// Conformance: console: charts of numeric fields, as pictures, tables and CSV
#[tokio::test]
async fn numeric_fields_are_pictures_and_tables_and_a_file() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.set_functions([DECODER, "", ""]).await.unwrap();
    for byte in [10, 40, 10] {
        alice.simulate("dev-1", &[byte], 1).await.unwrap();
    }
    let device = visitor.get("/console/applications/alice-app/devices/dev-1").await;
    let page = visitor.get(&device.link("Charts")).await;
    assert_eq!((page.status, page.html.matches("<svg").count()), (200, 2), "{}", page.html);
    for expected in ["celsius: from 10 to 40", "mean 20, 3 values", "From 3 uplinks", "class=\"line\" d=\"M"] {
        assert!(page.html.contains(expected), "{expected}: {}", page.html);
    }
    assert!(!page.html.contains("<script>") && !page.html.contains("style="), "{}", page.html);

    let one = visitor.get(&format!("{PATH}{}", page.link("celsius"))).await;
    assert_eq!(one.html.matches("<svg").count(), 1, "{}", one.html);
    let file = visitor.get(&one.link("CSV")).await;
    assert_eq!(file.header("content-type"), "text/csv; charset=utf-8");
    let lines: Vec<_> = file.html.lines().collect();
    assert_eq!(lines[0], "time,field,min,mean,max,count,device,missing");
    let count: u64 = lines[1..].iter().map(|line| line.split(',').nth(5).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(count, 3, "{}", file.html);
    assert!(lines[1..].iter().all(|line| line.ends_with(",dev-1,")), "nothing is missing: {}", file.html);
    assert!(file.header("content-disposition").contains("\"dev-1.csv\""));
    let all = visitor.get(&page.link("CSV")).await;
    assert!(all.html.contains(",\"<script>\"\"=1\","), "{}", all.html);
}

// Conformance: console: charts of numeric fields, as pictures, tables and CSV
#[tokio::test]
async fn links_and_a_form_select_a_part_of_the_time() {
    let network = Network::start().await;
    let (alice, visitor) = visitor(&network).await;
    alice.simulate("dev-1", &[8, 52], 1).await.unwrap();
    let day = visitor.get(PATH).await;
    assert!(day.html.contains("<svg"), "{}", day.html);
    let hour = visitor.get(&format!("{PATH}{}", day.link("Hour"))).await;
    assert!(hour.html.contains("<svg") && hour.html.contains("value=\"1h\""), "{}", hour.html);
    for link in ["Earlier", "First half"] {
        let empty = visitor.get(&format!("{PATH}{}", day.link(link))).await;
        assert!(empty.html.contains("There are no uplinks in this period"), "{link}: {}", empty.html);
    }
    let late = visitor.get(&format!("{PATH}{}", day.link("Second half"))).await;
    assert!(late.html.contains("<svg"), "{}", late.html);
    let none = visitor.get(&format!("{PATH}?field=humidity")).await;
    assert!(none.html.contains("has a number in the field “humidity”"), "{}", none.html);
    for refused in ["?since=%3Cb%3E", "?since=1h&until=2h"] {
        let page = visitor.get(&format!("{PATH}{refused}")).await;
        assert!(page.status == 400 && !page.html.contains("<b>"), "{}: {}", page.status, page.html);
    }
    assert_eq!(visitor.get("/console/applications/alice-app/devices/NO/charts").await.status, 404);
}

/// Three devices, the last of which has another field than the others.
async fn several(network: &Network) -> (Owner, Visitor) {
    let (alice, visitor) = visitor(network).await;
    let decoder = "function Decoder(bytes, port) { return port === 2 ? { other: 1 } : { celsius: bytes[0] }; }";
    alice.set_functions([decoder, "", ""]).await.unwrap();
    for (device, byte, port) in [("dev-1", 10, 1), ("dev-1", 40, 1), ("dev-2", 20, 1), ("dev-3", 0, 2)] {
        alice.add_device(device).await;
        alice.simulate(device, &[byte], port).await.unwrap();
    }
    (alice, visitor)
}

// Conformance: console: charts of numeric fields, as pictures, tables and CSV
#[tokio::test]
async fn several_devices_are_in_one_picture_and_one_file() {
    let network = Network::start().await;
    let (_alice, visitor) = several(&network).await;
    let all = format!("{SEVERAL}?search=&device=dev-1&device=dev-2&device=dev-3&device=dev-1");
    let page = visitor.get(&format!("{all}&field=celsius")).await;
    assert_eq!((page.status, page.html.matches("<g class=\"line-").count()), (200, 2), "{}", page.html);
    for expected in [
        "celsius: from 10 to 40",
        "solid line, mean 25, 2 values",
        "dashed line, mean 20, 1 value",
        "None of the 1 uplinks of dev-3 in this period has a number in the field “celsius”.",
        "From 4 uplinks",
    ] {
        assert!(page.html.contains(expected), "{expected}: {}", page.html);
    }
    assert!(!page.html.contains("style="), "{}", page.html);
    let hour = visitor.get(&format!("{SEVERAL}{}", page.link("Hour"))).await;
    assert_eq!(hour.html.matches("<g class=\"line-").count(), 2, "{}", hour.html);

    let file = visitor.get(&page.link("CSV")).await;
    assert!(file.header("content-disposition").contains("\"alice-app.csv\""));
    let has_lines = |device: &str| file.html.lines().any(|line| line.ends_with(&format!(",{device},")));
    assert_eq!(["dev-1", "dev-2", "dev-3"].map(has_lines), [true, true, false], "{}", file.html);

    let fields = visitor.get(&all).await;
    assert_eq!(fields.html.matches("<figure").count(), 2, "{}", fields.html);
    assert!(fields.html.contains("dev-3 <span class=\"hint\">has no number in this field"), "{}", fields.html);
    assert!(fields.html.contains("dotted line, mean 1"), "a device looks the same in each picture: {}", fields.html);
    assert!(fields.html.contains("Lines have at most 80 points here"), "{}", fields.html);
    let summary = |field: &str| format!("<summary>Values<span class=\"unseen\"> of {field}</span> of dev-");
    let summaries = ["celsius", "other"].map(|field| fields.html.matches(&summary(field)).count());
    assert_eq!(summaries, [2, 1], "no two of a device sound alike: {}", fields.html);
}

// Conformance: console: charts of numeric fields, as pictures, tables and CSV
#[tokio::test]
async fn devices_of_a_chart_are_chosen_in_the_table() {
    let network = Network::start().await;
    let (_alice, visitor) = several(&network).await;
    let one = visitor.get(&format!("{PATH}?since=1h&field=celsius")).await;
    let table = visitor.get(&one.link("Compare with other devices")).await;
    let ticked = |html: &str, device: &str| html.contains(&format!("value=\"{device}\" checked"));
    assert!(ticked(&table.html, "dev-1") && !ticked(&table.html, "dev-2"), "{}", table.html);
    assert!(!table.html.contains("Chosen on other pages"), "it is in the table: {}", table.html);
    let found = visitor.get(&format!("{APPLICATION}?search=dev-3&since=1h&field=celsius&device=dev-1")).await;
    assert!(found.html.contains("Chosen on other pages") && ticked(&found.html, "dev-1"), "{}", found.html);
    assert_eq!([found.value("since"), found.value("field")], ["1h", "celsius"]);
    assert!(found.html.contains(&format!("formaction=\"{SEVERAL}\"")), "{}", found.html);
    let page = visitor.get(&format!("{SEVERAL}?search=dev-3&since=1h&field=celsius&device=dev-1&device=dev-2")).await;
    assert_eq!([page.value("since"), page.value("field"), page.value("device")], ["1h", "celsius", "dev-1"]);
    let table = visitor.get(&page.link("Choose other devices")).await;
    assert!(ticked(&table.html, "dev-1") && ticked(&table.html, "dev-2"), "{}", table.html);

    let one = visitor.get(&format!("{SEVERAL}?device=dev-2&field=celsius")).await;
    assert!(one.html.contains(">dev-2</a> <span class=\"hint\">solid line, mean 20, 1 value"), "{}", one.html);
    let none = visitor.get(SEVERAL).await;
    assert!(none.status == 200 && none.html.contains("No devices are chosen."), "{}", none.html);
    let nine: String = (1..=9).map(|number| format!("&device=dev-{number}")).collect();
    let many = visitor.get(&format!("{SEVERAL}?since=1h{nine}")).await;
    assert!(many.html.contains("so these are missing: dev-9."), "{}", many.html);
    assert!(many.html.contains("There are no uplinks of dev-8 in this period."), "{}", many.html);
    let day = visitor.get(&format!("{SEVERAL}{}", many.link("Day"))).await;
    assert!(day.html.contains("so these are missing: dev-9."), "{}", day.html);
    let table = visitor.get(&day.link("Choose other devices")).await;
    assert!(ticked(&table.html, "dev-1") && ticked(&table.html, "dev-9"), "{}", table.html);
    let file = visitor.get(&many.link("CSV")).await;
    assert!(file.header("content-disposition").contains("\"alice-app-incomplete.csv\""), "it has eight of nine");
    let too_many: String = (1..=33).map(|number| format!("&device=dev-{number}")).collect();
    let many = visitor.get(&format!("{SEVERAL}?since=1h{too_many}")).await;
    assert!(many.html.contains("33 devices are chosen, and a chart has at most 8."), "{}", many.html);
    assert!(!many.html.contains("<svg") && many.html.len() < 10_000, "not every link names all: {}", many.html);
    let table = visitor.get(&many.link("Choose fewer")).await;
    assert!(ticked(&table.html, "dev-1") && ticked(&table.html, "dev-33"), "none is lost: {}", table.html);
    let refused = visitor.get(&format!("{SEVERAL}?device=%3Cb%3E")).await;
    assert!(refused.status == 400 && !refused.html.contains("<b>"), "{}: {}", refused.status, refused.html);
}

// Conformance: console: charts of numeric fields, as pictures, tables and CSV
#[tokio::test(flavor = "multi_thread")]
async fn a_chart_and_its_file_say_what_cannot_be_read() {
    let network = Network::start().await;
    let (alice, visitor) = several(&network).await;
    // Deleting a device moves everything to Parquet files.
    alice.handler.delete_device(&alice.app_id, &"dev-3".parse().unwrap()).await.unwrap();
    let application = network.stack.settings().data_dir.join("history/app=alice-app");
    let day = fs::read_dir(application).unwrap().next().unwrap().unwrap().path();
    let foreign = "1000000000000-1990000009000-foreign.parquet";
    fs::write(day.join(foreign), "not a Parquet file").unwrap();

    let page = visitor.get(&format!("{SEVERAL}?device=dev-1&device=dev-2&field=celsius")).await;
    let named = format!("The handler cannot read {foreign}, so its uplinks are missing here.");
    assert_eq!(page.html.matches(&named).count(), 1, "{}", page.html);
    assert!(page.html.contains("<svg") && page.html.contains("From 3 uplinks"), "the rest is there: {}", page.html);
    let file = visitor.get(&page.link("CSV")).await;
    assert!(file.header("content-disposition").contains("\"alice-app-incomplete.csv\""));
    for device in ["dev-1", "dev-2"] {
        let end = format!(",{device},uplinks in unreadable files");
        assert!(file.html.lines().any(|line| line.ends_with(&end)), "{device}: {}", file.html);
    }
    network.stack.stop().await;
}
