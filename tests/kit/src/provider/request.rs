//! What the provider keeps of a request.

use serde_json::Value;
use std::time::Duration;

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// Counts from 0 in the order of arrival.
    pub number: usize,
    /// Arrival, measured from the start of the provider.
    pub at: Duration,
    /// `POST`, `GET` …
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub text: String,
    /// The body as JSON; null when it is none.
    pub body: Value,
    /// Label of the route that answered; none when no route matched.
    pub route: Option<String>,
    /// Requests in flight at arrival, this one included.
    pub in_flight: usize,
}

impl Request {
    /// The value of a header, the name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The messages of the conversation; empty when there are none.
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The names of the tools that were offered, on either wire.
    pub fn tool_names(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().map_or(&[][..], Vec::as_slice);
        tools.iter().filter_map(|t| t["name"].as_str().or_else(|| t["function"]["name"].as_str())).collect()
    }
}

/// How an answer ended, seen from the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All of it was written.
    Sent,
    /// The client went away before.
    ClientGone,
}
