"""Engines that answer prompts: in this process, by transformers, or by a vLLM server."""
