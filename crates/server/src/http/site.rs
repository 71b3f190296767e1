//! Shared by services with pages for browsers: files in the program, headers of pages, the origin of a request.

mod asset;
mod coding;
mod origin;
mod page;

pub use self::{
    asset::Asset,
    coding::{DEFLATE, takes_deflate},
    origin::{Origin, origin},
    page::{page, sentence},
};
