//! Charts in the console: pictures, tables and files.

use super::visitor;
use crate::harness::Network;

const PATH: &str = "/console/applications/alice-app/devices/dev-1/charts";
const DECODER: &str = "function Decoder(bytes) {
  return { celsius: bytes[0], '<script>\"=1': bytes[0] / 3 };
}";

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
    assert_eq!(lines[0], "time,field,min,mean,max,count");
    let count: u64 = lines[1..].iter().map(|line| line.rsplit(',').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(count, 3, "{}", file.html);
    let all = visitor.get(&page.link("CSV")).await;
    assert!(all.html.contains(",\"<script>\"\"=1\","), "{}", all.html);
}

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
    assert!(none.html.contains("has a number in this field"), "{}", none.html);
    for refused in ["?since=%3Cb%3E", "?since=1h&until=2h"] {
        let page = visitor.get(&format!("{PATH}{refused}")).await;
        assert!(page.status == 400 && !page.html.contains("<b>"), "{}: {}", page.status, page.html);
    }
    assert_eq!(visitor.get("/console/applications/alice-app/devices/NO/charts").await.status, 404);
}
