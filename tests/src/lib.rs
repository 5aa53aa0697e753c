//! End-to-end tests live beside this file, one per user story.
