//! The client of an XMPP server (RFC 6120 and RFC 6121): stream negotiation, SASL PLAIN, resource
//! binding, and messages with a payload in XML Encoding Rules.
//!
//! The machine does not encrypt: with TLS from the first byte (XEP-0368) its bytes pass an
//! encrypted connection, without it the password passes in clear text. STARTTLS (RFC 6120, section
//! 5) is not implemented.
//!
//! ```
//! use gridhaul_protocols::endpoint::Endpoint;
//! use gridhaul_protocols::xmpp::{Client, Settings};
//! use gridhaul_scenario::units::{Duration, Instant};
//!
//! let mut client = Client::new(Settings {
//!     user: "meter".into(),
//!     domain: "example.org".into(),
//!     password: "secret".into(),
//!     resource: "one".into(),
//!     destination: Some("head@example.org/one".into()),
//!     keep_alive: Duration::from_secs(60),
//! });
//! client.open(Instant::ZERO);
//! let mut bytes = Vec::new();
//! client.poll_output(&mut bytes);
//! assert!(bytes.starts_with(b"<?xml version='1.0'?><stream:stream to='example.org'"));
//! ```

mod octets;
mod xml;

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gridhaul_scenario::units::{Duration, Instant};
use quick_xml::escape::escape;

use crate::endpoint::{Endpoint, EndpointError, NotSent, Queues};
use xml::{Element, Part, Splitter};

/// Name of the protocol in errors.
const NAME: &str = "xmpp";

/// Longest message, so that memory stays bounded. A server may accept less.
pub const MESSAGE_MAX: usize = 1 << 20;

/// Namespace of the stream (RFC 6120, section 4.8.1).
const STREAMS: &str = "http://etherx.jabber.org/streams";

/// Identifier of the request that binds a resource.
const BIND: &str = "bind";

/// A client and its account.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    /// Name of the account at the server.
    pub user: String,
    /// Domain of the server.
    pub domain: String,
    /// Password of the account.
    pub password: String,
    /// Name of this connection among those of the account.
    pub resource: String,
    /// Full address to which messages are sent; `None` for a client that only receives.
    pub destination: Option<String>,
    /// Time without output after which white space keeps the connection alive.
    pub keep_alive: Duration,
}

impl Settings {
    /// The full address of this client: account, domain and resource.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{}@{}/{}", self.user, self.domain, self.resource)
    }
}

/// Passwords are not for logs.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Settings");
        fields.field("address", &self.address()).field("destination", &self.destination);
        fields.field("keep_alive", &self.keep_alive).finish_non_exhaustive()
    }
}

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Awaits the header and the features of a stream.
    Opening {
        /// Whether the server has accepted the credentials.
        authenticated: bool,
    },
    Authenticating,
    Binding,
    Bound,
}

/// The client.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    queues: Queues,
    splitter: Splitter,
    state: State,
    /// Time of the last output.
    last_output: Instant,
}

impl Client {
    /// A client that is not connected.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            queues: Queues::default(),
            splitter: Splitter::default(),
            state: State::Opening { authenticated: false },
            last_output: Instant::ZERO,
        }
    }

    /// Opens a stream (RFC 6120, section 4.2), also in the place of an earlier one (section 4.3.3).
    fn open_stream(&mut self, authenticated: bool) {
        self.splitter = Splitter::default();
        self.state = State::Opening { authenticated };
        let domain = escape(self.settings.domain.as_str());
        let header = format!(
            "<?xml version='1.0'?><stream:stream to='{domain}' version='1.0' \
             xmlns='jabber:client' xmlns:stream='{STREAMS}'>"
        );
        self.write(&header);
    }

    fn write(&mut self, text: &str) {
        self.queues.output.extend(text.bytes());
    }

    fn handle_part(&mut self, part: &Part) -> Result<(), EndpointError> {
        match part {
            Part::Header(header) => handle_header(header),
            Part::End => Err(invalid("the server has closed the stream")),
            // The prefix is `stream` by convention (RFC 6120, section 4.8.5).
            Part::Child(element) if element.name == "stream:error" => {
                Err(invalid(format!("the server reports the error {}", condition(element))))
            }
            Part::Child(element) => self.handle_element(element),
        }
    }

    fn handle_element(&mut self, element: &Element) -> Result<(), EndpointError> {
        match (self.state, element.name.as_str()) {
            (State::Opening { authenticated: false }, "stream:features") => {
                self.authenticate(element)
            }
            (State::Opening { authenticated: true }, "stream:features") => self.bind(element),
            (State::Authenticating, "success") => {
                self.open_stream(true);
                Ok(())
            }
            (State::Authenticating, "failure") => {
                Err(invalid(format!("the server refuses the credentials: {}", condition(element))))
            }
            (State::Binding, "iq") if element.attribute("id") == Some(BIND) => {
                self.handle_binding(element)
            }
            (State::Bound, "message") => {
                // A message that could not be delivered comes back as an error.
                if element.attribute("type") != Some("error") {
                    self.queues.messages.extend(octets::read(element));
                }
                Ok(())
            }
            (State::Binding | State::Bound, "iq") => {
                self.answer(element);
                Ok(())
            }
            (State::Binding | State::Bound, _) => Ok(()),
            (_, name) => Err(invalid(format!("<{name}> during the negotiation of the stream"))),
        }
    }

    /// Sends the credentials (RFC 6120, section 6.4; RFC 4616).
    fn authenticate(&mut self, features: &Element) -> Result<(), EndpointError> {
        let requires = |element: &Element| element.child("required").is_some();
        if features.child("starttls").is_some_and(requires) {
            return Err(invalid(
                "the server requires STARTTLS, which is not available: use xmpps:// and the \
                 port for TLS from the first byte",
            ));
        }
        let mechanisms = features.child("mechanisms").map_or(&[][..], |element| &element.children);
        let names: Vec<_> = mechanisms.iter().map(|mechanism| mechanism.text.trim()).collect();
        if !names.contains(&"PLAIN") {
            let offered = names.join(", ");
            let reason =
                format!("the server does not offer SASL PLAIN on this connection, but: {offered}");
            return Err(invalid(reason));
        }
        let Settings { user, password, .. } = &self.settings;
        let credentials = STANDARD.encode(format!("\0{user}\0{password}"));
        let request = format!(
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{credentials}</auth>"
        );
        self.write(&request);
        self.state = State::Authenticating;
        Ok(())
    }

    /// Requests the resource (RFC 6120, section 7.7).
    fn bind(&mut self, features: &Element) -> Result<(), EndpointError> {
        if features.child("bind").is_none() {
            return Err(invalid("the server does not offer to bind a resource"));
        }
        let resource = escape(self.settings.resource.as_str());
        let request = format!(
            "<iq type='set' id='{BIND}'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>\
             <resource>{resource}</resource></bind></iq>"
        );
        self.write(&request);
        self.state = State::Binding;
        Ok(())
    }

    fn handle_binding(&mut self, answer: &Element) -> Result<(), EndpointError> {
        if answer.attribute("type") != Some("result") {
            let reason = answer.child("error").map_or_else(|| "no reason".into(), condition);
            return Err(invalid(format!("the server refuses the resource: {reason}")));
        }
        let address = answer
            .child("bind")
            .and_then(|element| element.child("jid"))
            .map(|element| element.text.trim());
        let expected = self.settings.address();
        if address != Some(expected.as_str()) {
            let assigned = address.unwrap_or("none");
            return Err(invalid(format!(
                "the server has assigned the address {assigned} and not {expected}, at which \
                 messages are expected"
            )));
        }
        self.state = State::Bound;
        Ok(())
    }

    /// Answers a request: this client has no services (RFC 6120, sections 8.2.3 and 8.4).
    fn answer(&mut self, request: &Element) {
        if !matches!(request.attribute("type"), Some("get" | "set")) {
            return;
        }
        let id = escape(request.attribute("id").unwrap_or_default());
        let to = request.attribute("from").map(|from| format!(" to='{}'", escape(from)));
        let to = to.unwrap_or_default();
        let answer = format!(
            "<iq type='error' id='{id}'{to}><error type='cancel'><service-unavailable \
             xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
        );
        self.write(&answer);
    }
}

impl Endpoint for Client {
    fn open(&mut self, now: Instant) {
        self.queues.clear();
        self.last_output = now;
        self.open_stream(false);
    }

    fn handle_input(&mut self, bytes: &[u8], _now: Instant) -> Result<(), EndpointError> {
        self.queues.input.extend(bytes);
        while let Some(part) = self.splitter.poll(&mut self.queues.input).map_err(invalid)? {
            self.handle_part(&part)?;
        }
        Ok(())
    }

    fn handle_time(&mut self, now: Instant) -> Result<(), EndpointError> {
        if self.is_ready() && now >= self.last_output + self.settings.keep_alive {
            // White space between stanzas (RFC 6120, section 11.7).
            self.write(" ");
            self.last_output = now;
        }
        Ok(())
    }

    fn is_ready(&self) -> bool {
        self.state == State::Bound
    }

    fn publish(&mut self, message: &[u8], now: Instant) -> Result<(), NotSent> {
        let destination = self.settings.destination.as_ref().filter(|_| self.is_ready());
        let destination = escape(destination.ok_or(NotSent::NotReady)?.as_str()).into_owned();
        if message.len() > MESSAGE_MAX {
            return Err(NotSent::TooLong(MESSAGE_MAX));
        }
        self.write(&format!("<message to='{destination}'>"));
        octets::write(message, &mut self.queues.output);
        self.write("</message>");
        self.last_output = now;
        Ok(())
    }

    /// Ends the stream (RFC 6120, section 4.4).
    fn close(&mut self) {
        self.write("</stream:stream>");
    }

    fn queues(&mut self) -> &mut Queues {
        &mut self.queues
    }
}

fn handle_header(header: &Element) -> Result<(), EndpointError> {
    let is_stream =
        header.name == "stream:stream" && header.attribute("xmlns:stream") == Some(STREAMS);
    if !is_stream {
        return Err(invalid(format!("<{}> is not the header of an XMPP stream", header.name)));
    }
    // Without a version the server is older than XMPP 1.0 and sends no features (RFC 6120, section
    // 4.7.5).
    match header.attribute("version") {
        Some(version) if version.starts_with("1.") => Ok(()),
        version => Err(invalid(format!("version {} of XMPP", version.unwrap_or("0.9")))),
    }
}

/// The condition of an error, and its text.
fn condition(error: &Element) -> String {
    let condition = error.children.iter().find(|child| child.name != "text");
    let name = condition.map_or("undefined-condition", |child| child.name.as_str());
    match error.child("text") {
        Some(text) if !text.text.trim().is_empty() => format!("{name} ({})", text.text.trim()),
        _ => name.into(),
    }
}

fn invalid(reason: impl Into<String>) -> EndpointError {
    EndpointError::Invalid { protocol: NAME, reason: reason.into() }
}
