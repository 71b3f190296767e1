//! A browser without scripts: it keeps cookies, follows redirects, and says where its forms come from.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use reqwest::{
    Client, RequestBuilder, Response, Url,
    header::{HeaderMap, LOCATION, SET_COOKIE},
    redirect::Policy,
};

use tokio::time::{Instant, sleep};

use crate::harness::{MESSAGE_TIMEOUT, PASSWORD};

const REDIRECTS_MAX: usize = 10;
/// Between two looks at a page that is to change.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct Visitor {
    http: Client,
    base: String,
    cookies: Mutex<BTreeMap<String, String>>,
    set_cookies: Mutex<Vec<String>>,
}

/// A page, after all redirects.
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) path: String,
    pub(crate) html: String,
    headers: HeaderMap,
}

impl Visitor {
    pub(crate) fn new(base: &str) -> Self {
        let http = Client::builder().redirect(Policy::none()).build().unwrap();
        Self { http, base: base.to_owned(), cookies: Mutex::default(), set_cookies: Mutex::default() }
    }

    pub(crate) async fn logged_in(base: &str, name: &str) -> Self {
        let visitor = Self::new(base);
        visitor.log_in(base, name).await;
        visitor
    }

    /// Logs in at the account site.
    pub(crate) async fn log_in(&self, account: &str, name: &str) {
        let fields = [("username", name), ("password", PASSWORD)];
        let request = self.http.post(format!("{account}/users/login")).header("origin", account).form(&fields);
        assert_eq!(self.send(request).await.status(), 303);
    }

    pub(crate) async fn get(&self, path: &str) -> Page {
        self.follow(self.open(path).await).await
    }

    /// The page, as soon as it has the text.
    pub(crate) async fn until(&self, path: &str, text: &str) -> Page {
        let end = Instant::now() + MESSAGE_TIMEOUT;
        loop {
            let page = self.get(path).await;
            if page.html.contains(text) {
                return page;
            }
            assert!(Instant::now() < end, "no {text:?}: {}", page.html);
            sleep(PAUSE).await;
        }
    }

    /// A response whose body may not end.
    pub(crate) async fn open(&self, path: &str) -> Response {
        self.send(self.http.get(self.url(path)).header("accept", "text/html")).await
    }

    /// The same to a request with these headers.
    pub(crate) async fn open_with(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        let request = self.http.get(self.url(path)).header("accept", "text/html");
        self.send(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
    }

    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        self.post_from(Some(&self.base), path, fields).await
    }

    pub(crate) async fn post_from(&self, origin: Option<&str>, path: &str, fields: &[(&str, &str)]) -> Page {
        let mut request = self.http.post(self.url(path)).header("accept", "text/html").form(fields);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        self.follow(self.send(request).await).await
    }

    /// Allows what a consent page asks for.
    pub(crate) async fn consent(&self, account: &str, page: &Page) -> Page {
        let hidden = page.html.split("type=\"hidden\" name=\"").skip(1).map(|rest| {
            let (name, rest) = rest.split_once("\" value=\"").unwrap();
            (name.to_owned(), unescaped(rest.split('"').next().unwrap()))
        });
        let mut fields: Vec<_> = hidden.collect();
        fields.push(("decision".to_owned(), "allow".to_owned()));
        let (_, action) = page.html.split_once("action=\"/users").unwrap();
        let action = format!("{account}/users{}", action.split('"').next().unwrap());
        let request = self.http.post(action).header("origin", account).header("accept", "text/html").form(&fields);
        self.follow(self.send(request).await).await
    }

    /// All cookies that were set, with their attributes.
    pub(crate) fn set_cookies(&self) -> Vec<String> {
        self.set_cookies.lock().unwrap().clone()
    }

    async fn follow(&self, mut response: Response) -> Page {
        for _ in 0..REDIRECTS_MAX {
            let Some(location) = response.headers().get(LOCATION) else { return Page::of(response).await };
            let next = response.url().join(location.to_str().unwrap()).unwrap();
            response = self.send(self.http.get(next).header("accept", "text/html")).await;
        }
        panic!("too many redirects, the last to {}", response.url());
    }

    async fn send(&self, request: RequestBuilder) -> Response {
        let cookies: Vec<_> =
            self.cookies.lock().unwrap().iter().map(|(name, value)| format!("{name}={value}")).collect();
        let response = request.header("cookie", cookies.join("; ")).send().await.unwrap();
        for cookie in response.headers().get_all(SET_COOKIE) {
            self.keep(cookie.to_str().unwrap());
        }
        response
    }

    fn keep(&self, cookie: &str) {
        self.set_cookies.lock().unwrap().push(cookie.to_owned());
        let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
        let mut cookies = self.cookies.lock().unwrap();
        match value {
            "" => cookies.remove(name),
            value => cookies.insert(name.to_owned(), value.to_owned()),
        };
    }

    fn url(&self, path: &str) -> Url {
        Url::parse(&self.base).unwrap().join(path).unwrap()
    }
}

impl Page {
    async fn of(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let path = response.url().path().to_owned();
        Self { status, path, html: response.text().await.unwrap(), headers }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// Returns the target of a link with this text.
    pub(crate) fn link(&self, text: &str) -> String {
        let (before, _) =
            self.html.split_once(&format!(">{text}")).unwrap_or_else(|| panic!("no {text}: {}", self.html));
        let (_, link) = before.rsplit_once("href=\"").unwrap();
        link.split('"').next().unwrap().replace("&#38;", "&").replace("&amp;", "&")
    }

    /// Returns the content of a text area, as a browser reads it.
    pub(crate) fn typed(&self, name: &str) -> String {
        let (_, after) = self
            .html
            .split_once(&format!("<textarea id=\"{name}\""))
            .unwrap_or_else(|| panic!("no {name}: {}", self.html));
        let (_, after) = after.split_once('>').unwrap();
        let text = after.split("</textarea>").next().unwrap();
        let text = text.strip_prefix('\n').unwrap_or(text);
        unescaped(text)
    }

    /// The value of an input.
    pub(crate) fn value(&self, name: &str) -> String {
        let found = self.html.split_once(&format!("name=\"{name}\" value=\""));
        let (_, after) = found.unwrap_or_else(|| panic!("no {name}: {}", self.html));
        unescaped(after.split('"').next().unwrap())
    }
}

fn unescaped(html: &str) -> String {
    let entities = [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")];
    entities.into_iter().fold(html.to_owned(), |text, (entity, character)| text.replace(entity, character))
}
