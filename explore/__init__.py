"""Explores without production: tests, and services in processes of their own."""
