//! What services with pages for browsers share: files in the program, headers of pages, where a request comes from.

mod asset;
mod origin;
mod page;

pub use self::{
    asset::Asset,
    origin::{Origin, origin},
    page::{page, sentence},
};
