//! Requests and responses of HTTP/1.1 (RFC 9112), one of each per connection.

mod request;
mod response;

pub use request::Request;
pub use response::Response;
