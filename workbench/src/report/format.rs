//! The formats of reports.

pub(crate) mod escape;
pub(crate) mod github;
#[cfg(unix)]
mod html;
pub(crate) mod json;
mod junit;
pub(crate) mod markdown;
pub(crate) mod sarif;
mod tap;
pub(crate) mod text;

/// A format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For a terminal.
    Human,
    /// An object per codec, then the totals.
    Json,
    /// For the test reports of most CI systems.
    Junit,
    /// For code scanning.
    Sarif,
    /// Annotations of GitHub Actions.
    Github,
    /// The Test Anything Protocol.
    Tap,
    /// A page that stands alone.
    Html,
    /// For pull requests and summaries of CI jobs.
    Markdown,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Human, Self::Json, Self::Junit, Self::Sarif, Self::Github, Self::Tap, Self::Html, Self::Markdown];

    /// The name in arguments.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Json => "json",
            Self::Junit => "junit",
            Self::Sarif => "sarif",
            Self::Github => "github",
            Self::Tap => "tap",
            Self::Html => "html",
            Self::Markdown => "markdown",
        }
    }

    /// Returns the reporter for this format. `detail` is for people only; the others have everything.
    #[cfg(unix)]
    pub fn reporter(self, detail: text::Detail) -> Box<dyn super::reporter::Reporter> {
        match self {
            Self::Human => Box::new(text::Human(detail)),
            Self::Json => Box::new(json::Json),
            Self::Junit => Box::new(junit::Junit::default()),
            Self::Sarif => Box::new(sarif::Sarif::default()),
            Self::Github => Box::new(github::Github),
            Self::Tap => Box::new(tap::Tap::default()),
            Self::Html => Box::new(html::Html::default()),
            Self::Markdown => Box::new(markdown::Markdown::default()),
        }
    }
}
