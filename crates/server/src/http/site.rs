//! Shared by services with pages for browsers: files in the program, headers of pages, the origin of a request.

mod asset;
mod origin;
mod page;

pub use self::{
    asset::Asset,
    origin::{Origin, origin},
    page::{page, sentence},
};
