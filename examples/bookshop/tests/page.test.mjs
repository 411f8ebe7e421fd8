import assert from 'node:assert/strict'
import { test } from 'node:test'

test('a book can be bought from its page', async () => {
  const answer = await fetch(`${process.env.LDFI_TARGET}/books/17`)
  assert.equal(answer.status, 200)
  const page = await answer.json()
  assert.ok(page.book.title && page.price && page.delivery)
})
