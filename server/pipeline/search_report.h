// The search's part of a result: counts, why it ended, and how it went. Pure functions.
#pragma once

#include "autograph/v1/optimizer.pb.h"
#include "search/search.h"

namespace ag {

namespace v1 = autograph::v1;

void TakeSearchFigures(const SearchResult& found, v1::Result* result);

void ToProto(const AppliedRewrite& rewrite, v1::RewriteCount* proto);
void ToProto(const SearchLog& log, v1::SearchLog* proto);

}  // namespace ag
