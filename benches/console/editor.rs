//! The playground and the functions of the console: how soon somebody can type, and how soon a keystroke shows its
//! result.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Stdio},
    thread,
};

use runtime::Dialect;
use serde_json::json;
use testing::figures::{Figures, median};

use crate::{
    airlock,
    driver::Browser,
    number,
    page::{Painted, ask, browser, logged_in, told, until},
    records,
    server_process::ServerProcess,
};

const APPLICATION: &str = "edited-app";
/// Number of times that the page is opened after the first time.
const OPENED: usize = 5;
/// Number of keys that are pressed in each codec.
const KEYS: usize = 5;

/// Notes when there is an editor with its first result, in milliseconds after the navigation began, and when all work
/// is done. Runs before the scripts of the page.
const READY: &str = "(() => {
    const ready = (window.ready = {});
    const editor = '#codec [role=textbox], #codec textarea:not([hidden])';
    new MutationObserver(() => {
      const outcome = document.getElementById('outcome');
      if (outcome?.hasChildNodes() && document.querySelector(editor)) ready.result ??= performance.now();
      if (document.documentElement?.hasAttribute('data-ready')) ready.all ??= performance.now();
    }).observe(document, { childList: true, subtree: true, attributes: true });
  })();";
const IS_READY: &str = "return window.ready?.all !== undefined;";
const WHEN_READY: &str = "return [ready.result, ready.all];";

/// Opens a state as a link does.
const OPEN: &str = "const [state, done] = arguments;
    import(new URL('link.js', location)).then(({ toFragment }) => toFragment(state)).then((fragment) => {
      location.hash = fragment;
      done(true);
    });";
const IS_OPEN: &str = r"const plain = (text) => text.replace(/\r\n?/g, '\n');
    const result = document.getElementById('result');
    const isOpen = plain(document.getElementById('text').value) === plain(arguments[0]);
    return isOpen && !result.classList.contains('busy') && document.getElementById('outcome').hasChildNodes();";
/// Puts the cursor before the source, and notes how long each key takes until its result is painted.
const FOCUS: &str = "const editor = document.querySelector('#codec [role=textbox], #codec textarea:not([hidden])');
    editor.focus();
    if ('setSelectionRange' in editor) editor.setSelectionRange(0, 0);
    if (window.typed === undefined) {
      window.typed = { at: null, took: [] };
      addEventListener('keydown', (event) => {
        const now = performance.now();
        typed.at = event.timeStamp > 0 && event.timeStamp <= now ? event.timeStamp : now;
      }, true);
      new MutationObserver(() => {
        const { at } = typed;
        if (at === null) return;
        typed.at = null;
        requestAnimationFrame(() => {
          const channel = new MessageChannel();
          channel.port1.onmessage = () => typed.took.push(performance.now() - at);
          channel.port2.postMessage(null);
        });
      }).observe(document.getElementById('outcome'), { childList: true });
    }
    typed.took = [];
    return editor === document.activeElement;";
const HAS_TAKEN: &str = "return typed.took.length >= arguments[0];";
const TOOK: &str = "return typed.took;";

/// `airlock playground` while it runs.
struct Playground {
    child: Child,
    url: String,
}

/// A source with a payload that it decodes.
struct Source {
    id: String,
    text: String,
    dialect: &'static str,
    payload: String,
}

impl Playground {
    fn start() -> Self {
        let mut command = airlock();
        command.args(["playground", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.find(|line| line.starts_with("Playground: ")).expect("`airlock playground` says where it is");
        thread::spawn(move || lines.for_each(drop));
        Self { child, url: line.split(' ').next_back().unwrap().to_owned() }
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        // A process that has already ended cannot be killed.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

pub(crate) async fn measure(figures: &mut Figures) {
    let playground = Playground::start();
    let browser = browser(&playground.url).await;
    ready(figures, &playground, &browser).await;
    keystrokes(figures, &browser).await;
    functions(figures).await;
}

async fn ready(figures: &mut Figures, playground: &Playground, browser: &Browser) {
    browser.tell("Page.addScriptToEvaluateOnNewDocument", json!({ "source": READY })).await;
    let mut opened = Vec::new();
    for _ in 0..=OPENED {
        // A page that only differs in its fragment is not loaded again.
        browser.client.goto("about:blank").await.unwrap();
        browser.client.goto(&playground.url).await.unwrap();
        until(browser, "the first result of the playground", IS_READY, vec![]).await;
        opened.push(ask::<[f64; 2]>(browser, WHEN_READY, vec![]).await);
    }
    let [first, all] = opened.remove(0);
    let what = "editor ready, with the result of its first codec";
    figures.add(&format!("{what}, first visit"), format!("{first:.0} ms"), "≤ 1.5 s");
    let mut later: Vec<f64> = opened.iter().map(|[result, _]| *result).collect();
    figures.add(&format!("{what}, later ones"), format!("{:.0} ms", median(&mut later)), "");
    figures.add("byte map and fuel by line, too, first visit", format!("{all:.0} ms"), "");
}

/// Opens the functions of an application in the console, whose sources are in editors, too.
async fn functions(figures: &mut Figures) {
    let server = ServerProcess::start("").await;
    server.create_application(APPLICATION, ServerProcess::demo_functions()).await;
    let browser = logged_in(&server, APPLICATION).await;
    let url = format!("http://{}/console/applications/{APPLICATION}/functions", server.account);
    let page = Painted::of(&browser, &url).await;
    figures.add("functions in the console painted and loaded", format!("{:.0} ms", page.whole()), "≤ 1.5 s");
}

async fn keystrokes(figures: &mut Figures, browser: &Browser) {
    let sources = chosen(sources(), number("CONSOLE_CODECS", 60.0) as usize);
    let mut times = Vec::new();
    for source in &sources {
        times.push(median(&mut type_into(browser, source).await));
    }
    let (largest, took) = (sources.last().unwrap(), *times.last().unwrap());
    let slowest = times.iter().zip(&sources).max_by(|(a, _), (b, _)| a.total_cmp(b)).unwrap();
    let slowest = format!("{:.0} ms, {}, {} bytes", slowest.0, slowest.1.id, slowest.1.text.len());
    figures.add(
        &format!("keystroke to result, median of {} codecs", times.len()),
        format!("{:.0} ms", median(&mut times)),
        "≤ 100 ms",
    );
    let what = format!("keystroke to result, the largest codec: {}, {} bytes", largest.id, largest.text.len());
    figures.add(&what, format!("{took:.0} ms"), "≤ 300 ms");
    figures.add("keystroke to result, the slowest codec", slowest, "");
}

/// Opens a source, and types spaces before it; returns what each took, in milliseconds.
async fn type_into(browser: &Browser, source: &Source) -> Vec<f64> {
    let Source { id, text, dialect, payload } = source;
    let state = json!({ "text": text, "dialect": dialect, "payloads": payload, "notation": "hex" });
    told::<bool>(browser, OPEN, vec![state]).await;
    until(browser, &format!("the result of {id}"), IS_OPEN, vec![json!(text)]).await;
    let has_focus = ask::<bool>(browser, FOCUS, vec![]).await;
    assert!(has_focus, "nobody can type into {id}");
    for count in 1..=KEYS {
        browser.press(" ").await;
        until(browser, &format!("the result of key {count} in {id}"), HAS_TAKEN, vec![json!(count)]).await;
    }
    ask(browser, TOOK, vec![]).await
}

/// The codecs with an uplink, the largest last.
fn sources() -> Vec<Source> {
    let mut sources: Vec<_> = records::read().iter().filter_map(of_codec).chain(of_benches()).collect();
    sources.sort_by_key(|source| source.text.len());
    sources
}

fn of_codec(codec: &workbench::Codec) -> Option<Source> {
    let call = records::uplinks(codec).next()?;
    let payload = format!("{}: {}", call.port, hex::encode(&call.payload));
    let dialect = codec.dialect.map_or("", Dialect::name);
    Some(Source { id: codec.id.clone(), text: codec.script.clone(), dialect, payload })
}

/// Those that other benches run.
fn of_benches() -> impl Iterator<Item = Source> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/codecs");
    ["climate", "meter", "tiny"].into_iter().map(move |name| {
        let text = fs::read_to_string(dir.join(name).with_extension("js")).unwrap();
        // Only the meter refuses what is not its own.
        let payload = fs::read(dir.join("meter.bin")).unwrap();
        Source { id: name.to_owned(), text, dialect: "", payload: format!("1: {}", hex::encode(payload)) }
    })
}

/// So many of them, evenly over their sizes.
fn chosen(sources: Vec<Source>, count: usize) -> Vec<Source> {
    let step = sources.len().div_ceil(count.max(1)).max(1);
    // From the end, so that the largest is one of them.
    let mut chosen: Vec<_> = sources.into_iter().rev().step_by(step).collect();
    chosen.reverse();
    chosen
}
