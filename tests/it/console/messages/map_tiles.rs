//! Maps with the tiles of a server that the operator has set.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use airlock::settings::Settings;
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, Uri, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use console::MapTiles;
use tokio::net::TcpListener;

use super::pages::located;
use crate::{
    browser::{DESK, console::wait_for_text, driver::Look},
    console::{
        browsing::{ask, logged_in},
        visitor::Visitor,
    },
};

const TILE: &str = "<svg xmlns='http://www.w3.org/2000/svg' width='256' height='256'>\
                    <rect width='256' height='256' fill='#9c9' stroke='#363'/></svg>";
/// Each tile with whether it has come, and whether it is seen.
const TILES: &str = "const tiles = [...document.querySelectorAll('.map .tile')];
    const look = async (tile) => {
        const came = await tile.decode().then(() => true, () => false);
        return [tile.src, came, tile.getBoundingClientRect().height > 0];
    };
    return Promise.all(tiles.map(look));";

type Asked = Arc<Mutex<Vec<(String, HeaderMap)>>>;

/// A server that has each second column of tiles, and keeps what it is asked.
async fn tile_server() -> (String, Asked) {
    async fn answer(State(asked): State<Asked>, uri: Uri, headers: HeaderMap) -> Response {
        asked.lock().unwrap().push((uri.path().to_owned(), headers));
        match has_tile(uri.path()) {
            true => ([(CONTENT_TYPE, "image/svg+xml")], TILE).into_response(),
            false => StatusCode::NOT_FOUND.into_response(),
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let asked = Asked::default();
    let router = Router::new().fallback(answer).with_state(asked.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (origin, asked)
}

/// `/level/column/row.png`.
fn has_tile(path: &str) -> bool {
    let column: u32 = path.split('/').nth(2).unwrap().parse().unwrap();
    column.is_multiple_of(2)
}

fn tiles_of(origin: &str) -> impl FnOnce(&mut Settings) {
    let url = format!("{origin}/{{z}}/{{x}}/{{y}}.png").parse().unwrap();
    move |settings| settings.console.map_tiles = Some(MapTiles { url, attribution: "© <b>Somebody".to_owned() })
}

#[tokio::test(flavor = "multi_thread")]
async fn tiles_lie_on_the_land_of_a_map_which_remains_where_none_comes() {
    let (origin, asked) = tile_server().await;
    let (network, _alice, path) = located(tiles_of(&origin)).await;
    let Some(browser) = logged_in(&network, "message-tiles", DESK).await else { return };
    browser.open(&path).await;
    wait_for_text(&browser, "section[@id='map']//p", "Tiles: © <b>Somebody. Where one does not come").await;
    let tiles: Vec<(String, bool, bool)> = serde_json::from_value(ask(&browser, TILES).await).unwrap();
    assert!((2..=20).contains(&tiles.len()), "{tiles:?}");
    for (url, came, is_seen) in &tiles {
        let has = has_tile(url.strip_prefix(&origin).unwrap());
        assert_eq!((*came, *is_seen), (has, has), "{url}");
    }
    let came: BTreeSet<bool> = tiles.iter().map(|(_, came, _)| *came).collect();
    assert_eq!(came.len(), 2, "some come and some do not: {tiles:?}");
    let complaints = browser.complaints().await;
    assert!(!complaints.iter().any(|complaint| complaint.contains("Content Security Policy")), "{complaints:?}");
    browser.look("message-map-tiles").await;
    for (path, headers) in asked.lock().unwrap().iter() {
        assert!(!headers.contains_key("referer") && !headers.contains_key("origin"), "{path}: {headers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tiles_need_no_scripts_and_only_pages_with_a_map_may_load_them() {
    let (origin, asked) = tile_server().await;
    let (network, _alice, path) = located(tiles_of(&origin)).await;
    let visitor = Visitor::logged_in(&network.stack.settings().client.auth_server, "alice").await;
    let page = visitor.get(&path).await;
    let policy = page.header("content-security-policy");
    assert!(
        policy.contains(&format!("; img-src 'self' {origin}; ")) && policy.matches("http").count() == 1,
        "{policy}"
    );
    for other in ["/console", "/console/applications/alice-app", "/console/applications/alice-app/messages"] {
        let policy = visitor.get(other).await.header("content-security-policy").to_owned();
        assert!(policy.contains("; img-src 'self'; "), "{other}: {policy}");
    }
    let phone = Look { width: 375, dark: true, scripts: false };
    let Some(browser) = logged_in(&network, "message-tiles-phone", phone).await else { return };
    // The page is open when its pictures have come, or have not.
    browser.open(&path).await;
    let asked: BTreeSet<String> = asked.lock().unwrap().iter().map(|(path, _)| path.clone()).collect();
    let shown: BTreeSet<String> = page.html.split("class=\"tile\" src=\"").skip(1).map(path_of(&origin)).collect();
    assert_eq!(asked, shown);
    browser.look("message-map-tiles").await;
}

/// The path on the server of tiles with which a text begins.
fn path_of(origin: &str) -> impl Fn(&str) -> String {
    move |rest| rest.split('"').next().unwrap().strip_prefix(origin).unwrap().to_owned()
}
