-- The items of recent responses, so that callers can refer to them by id (`item_reference`) instead of sending them.

CREATE TABLE response_items (
    org_id        {id} NOT NULL REFERENCES orgs (id),
    id            {id} NOT NULL,   -- as the response names the item; a provider's own id where it answered itself
    request_id    {id} NOT NULL,
    data          {blob} NOT NULL, -- the item as JSON
    expires_at_ms BIGINT NOT NULL,
    PRIMARY KEY (org_id, id)
);
CREATE INDEX response_items_by_expiry ON response_items (expires_at_ms);
CREATE INDEX response_items_by_request ON response_items (request_id);
